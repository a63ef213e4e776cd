# cython: boundscheck=False, wraparound=False
# The usual way: typed memoryviews over NumPy arrays, totals written over the scores, a batch item a thread at a time.
#
# It is the recurrence as published, a cell at a time, with -1e9 for what cannot be reached. Nothing is checked: a text
# that is longer than its frames gives a path that is none, and a length of 0 writes in front of the array.
from cython.parallel cimport prange


cdef void search_texts_first(int[:, ::1] path, float[:, ::1] totals, int texts, int frames) noexcept nogil:
    cdef int i, j
    cdef float stay, advance, unreachable = -1e9
    for j in range(frames):
        for i in range(max(0, texts - frames + j), min(texts, j + 1)):
            stay = unreachable if i == j else totals[i, j - 1]
            if i > 0:
                advance = totals[i - 1, j - 1]
            else:
                advance = 0. if j == 0 else unreachable
            totals[i, j] += max(stay, advance)
    i = texts - 1
    for j in range(frames - 1, -1, -1):
        path[i, j] = 1
        if i > 0 and (i == j or totals[i, j - 1] < totals[i - 1, j - 1]):
            i -= 1


cdef void search_frames_first(int[:, ::1] path, float[:, ::1] totals, int texts, int frames) noexcept nogil:
    cdef int i, j
    cdef float stay, advance, unreachable = -1e9
    for j in range(frames):
        for i in range(max(0, texts - frames + j), min(texts, j + 1)):
            stay = unreachable if i == j else totals[j - 1, i]
            if i > 0:
                advance = totals[j - 1, i - 1]
            else:
                advance = 0. if j == 0 else unreachable
            totals[j, i] += max(stay, advance)
    i = texts - 1
    for j in range(frames - 1, -1, -1):
        path[j, i] = 1
        if i > 0 and (i == j or totals[j - 1, i] < totals[j - 1, i - 1]):
            i -= 1


def texts_first(int[:, :, ::1] paths, float[:, :, ::1] scores, int[::1] text_lengths, int[::1] frame_lengths):
    """Mark the paths of scores [batch, text, frames], as in Glow-TTS."""
    cdef int b
    for b in prange(scores.shape[0], nogil=True):
        search_texts_first(paths[b], scores[b], text_lengths[b], frame_lengths[b])


def frames_first(int[:, :, ::1] paths, float[:, :, ::1] scores, int[::1] text_lengths, int[::1] frame_lengths):
    """Mark the paths of scores [batch, frames, text], as in VITS."""
    cdef int b
    for b in prange(scores.shape[0], nogil=True):
        search_frames_first(paths[b], scores[b], text_lengths[b], frame_lengths[b])
