# cython: cdivision=True
# Monotonic alignment search on tensors: no NumPy, no copy of the scores, no GIL, a batch item a thread at a time.
#
# The best total of a path that ends at text i in frame j is
#
#     totals[i] = max(totals[i - 1], totals[i]) + scores[i, j]     with the totals of frame j - 1 on the right
#
# Within a frame no text waits for another, so the loop over texts is the inner one, and g++ makes vectors of it if it
# is branchless and its memory lies together. Hence:
#
# - Only the totals of the last frame are kept, with -inf for what cannot be reached. Of the rest a path needs to know
#   whether it came from the text above: a byte a cell.
# - Where the scores of a frame do not lie together, those of 16 frames are transposed first.
# - The cells of a frame are taken in whole vectors, also those that no path can use; they cannot spoil the others.
cimport ATen as at
cimport torch
from interop cimport const_accessor1, const_accessor3
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset
from libcpp cimport bool as cbool
from libcpp.atomic cimport atomic
from libcpp.vector cimport vector
from torch.library cimport Tag, define, impl


cdef extern from "transpose.h" namespace "alignment" nogil:
    void transpose(const float* source, int64_t row, float* to, int64_t column) noexcept
    void prefetch(const float* place) noexcept


cdef enum:
    FRAMES = 16  # that are transposed together: a cache line of each text
    TEXTS = 16   # a vector of bytes
    CELLS = 1 << 15  # that a thread is worth starting for; ATen's grain size


# The scores of one batch item, and the part of them to use.
cdef struct Scores:
    const float* data
    int64_t text_stride
    int64_t frame_stride
    int64_t texts
    int64_t frames


# The memory that a thread works in.
cdef struct Workspace:
    int64_t pitch   # from frame to frame, a multiple of TEXTS
    float* old      # totals, and one more in front of them
    float* new
    float* block    # FRAMES frames of scores
    uint8_t* moved  # for each frame and text


cdef inline int64_t whole(int64_t texts) noexcept nogil:
    return (texts + TEXTS - 1) // TEXTS * TEXTS


cdef size_t workspace_size(int64_t texts, int64_t frames) noexcept nogil:
    return (2 + FRAMES) * sizeof(float) * (whole(texts) + TEXTS) + frames * (whole(texts) + TEXTS)


cdef Workspace workspace(uint8_t* memory, int64_t texts) noexcept nogil:
    cdef Workspace work
    work.pitch = whole(texts) + TEXTS
    work.old = <float*>memory + TEXTS
    work.new = work.old + work.pitch
    work.block = work.new + work.pitch - TEXTS
    work.moved = <uint8_t*>(work.block + FRAMES * work.pitch)
    return work


cdef void step(const float* old, float* new, const float* scores, uint8_t* moved, int64_t texts) noexcept nogil:
    # One frame. Of two where one is nan, this takes `advance`; x86 has an instruction that does just that.
    cdef int64_t i
    cdef float stay, advance
    for i in range(texts):
        stay = old[i]
        advance = old[i - 1]
        moved[i] = advance > stay
        new[i] = (stay if stay > advance else advance) + scores[i]


cdef void gather(
    const Scores* scores, int64_t begin, int64_t end, int64_t frame, int64_t frames, float* block, int64_t pitch
) noexcept nogil:
    # Copies the texts from `begin` to `end` of some frames into `block`, those of a frame together.
    cdef int64_t i = begin, j, stride = scores.text_stride
    cdef const float* source = scores.data + frame * scores.frame_stride
    if scores.frame_stride == 1 and frames == FRAMES:
        while i + 4 <= end:
            for j in range(4):
                prefetch(source + (i + j) * stride + FRAMES)
            for j in range(0, FRAMES, 4):
                transpose(source + i * stride + j, stride, block + j * pitch + i, pitch)
            i += 4
    while i < end:
        for j in range(frames):
            block[j * pitch + i] = source[i * stride + j * scores.frame_stride]
        i += 1


cdef cbool search_item(const Scores* scores, Workspace* work, int32_t* mask, int64_t row, int64_t rows) noexcept nogil:
    # Writes one item of the mask: `rows` rows of `row` numbers. Returns whether no nan and no inf came up.
    cdef int64_t texts = scores.texts, frames = scores.frames, spare = frames - texts, pitch = work.pitch
    cdef int64_t i, j, block, frame, begin, end, length
    cdef const float* column
    cdef cbool ordinary = True
    for i in range(-1, pitch - TEXTS):
        work.old[i] = -INFINITY
        work.new[i] = -INFINITY
    work.old[-1] = 0  # every path begins at text 0 in frame 0, as if it came from a text above
    for block in range((frames + FRAMES - 1) // FRAMES):
        frame = block * FRAMES
        length = min(<int64_t>FRAMES, frames - frame)
        if scores.text_stride != 1:
            begin = max(<int64_t>0, frame - spare) // TEXTS * TEXTS
            gather(scores, begin, min(texts, frame + length), frame, length, work.block, pitch)
        for j in range(frame, frame + length):
            # From text i on, frame i is the first that a path can be in, and frame i + spare the last.
            begin = max(<int64_t>0, j - spare) // TEXTS * TEXTS
            end = min(texts, j + 1)
            if scores.text_stride == 1:
                column = scores.data + j * scores.frame_stride
            else:
                column = work.block + (j - frame) * pitch
                end = whole(end)
            step(work.old + begin, work.new + begin, column + begin, work.moved + j * pitch + begin, end - begin)
            work.old[-1] = -INFINITY
            work.old, work.new = work.new, work.old
            # A nan or inf that a path can pass moves on from text to text, in `advance`, and arrives here.
            if j >= texts - 1 and not work.old[texts - 1] < INFINITY:
                ordinary = False
    memset(mask, 0, rows * row * sizeof(int32_t))
    i = texts - 1
    for j in range(frames - 1, -1, -1):
        mask[i * row + j] = 1
        if i > 0 and (i == j or work.moved[j * pitch + i]):
            i -= 1
    return ordinary


# What the threads share: each takes the next item that nobody has.
cdef struct Task:
    const Scores* items
    int64_t count
    atomic[int64_t]* next_item
    atomic[int64_t]* not_ordinary  # an item with nan or inf, or -1
    uint8_t* memory
    size_t memory_size             # of a thread
    int64_t texts                  # of the longest item
    int32_t* mask
    int64_t rows
    int64_t row


cdef void search_items(int64_t worker, int64_t end, void* data) noexcept nogil:
    cdef Task* task = <Task*>data
    cdef Workspace work = workspace(task.memory + worker * task.memory_size, task.texts)
    cdef int64_t item = task.next_item.fetch_add(1)
    while item < task.count:
        if not search_item(&task.items[item], &work, task.mask + item * task.rows * task.row, task.row, task.rows):
            task.not_ordinary.store(item)
        item = task.next_item.fetch_add(1)


cdef vector[Scores] checked(
    const at.Tensor& scores, const at.Tensor& text_lengths, const at.Tensor& frame_lengths
) except * nogil:
    # The items, with lengths that are copied, so that nobody can change them after they were checked.
    cdef const_accessor3[float] values = const_accessor3[float](scores, b"scores")
    cdef const_accessor1[int64_t] texts = const_accessor1[int64_t](text_lengths, b"text_lengths")
    cdef const_accessor1[int64_t] frames = const_accessor1[int64_t](frame_lengths, b"frame_lengths")
    cdef int64_t batch = values.size(0), longest = values.size(1), last = values.size(2), b
    cdef vector[Scores] items
    cdef Scores item
    if texts.size(0) != batch or frames.size(0) != batch:
        with gil:
            raise ValueError(
                f"arguments 'text_lengths' and 'frame_lengths' must have a length for each of the {batch} items of "
                f"'scores', got {texts.size(0)} and {frames.size(0)}"
            )
    item.text_stride, item.frame_stride = values.stride(1), values.stride(2)
    items.reserve(batch)
    for b in range(batch):
        item.data = values.data() + b * values.stride(0)
        item.texts, item.frames = texts[b], frames[b]
        if not (0 <= item.texts <= longest and 0 <= item.frames <= last):
            with gil:
                raise ValueError(
                    "arguments 'text_lengths' and 'frame_lengths' must lie within the sizes of 'scores', "
                    f"{longest} and {last}, got {item.texts} and {item.frames} for item {b}"
                )
        if item.texts > item.frames or (item.texts == 0 and item.frames > 0):
            with gil:
                raise ValueError(
                    "arguments 'text_lengths' and 'frame_lengths' must allow for a path, which takes a frame at least "
                    f"for each text and a text for each frame, got {item.texts} and {item.frames} for item {b}"
                )
        items.push_back(item)
    return items


cdef at.Tensor monotonic_alignment(
    const at.Tensor& scores, const at.Tensor& text_lengths, const at.Tensor& frame_lengths
) except * nogil:
    cdef vector[Scores] items = checked(scores, text_lengths, frame_lengths)
    cdef at.Tensor mask = at.empty(scores.sizes(), at.kInt), memory
    cdef atomic[int64_t] next_item, not_ordinary
    cdef int64_t frames = 0, cells = 0, workers, b
    cdef Task task
    if mask.numel() == 0:
        return mask
    task.texts = 0
    for b in range(<int64_t>items.size()):
        task.texts = max(task.texts, items[b].texts)
        frames = max(frames, items[b].frames)
        cells += items[b].texts * items[b].frames
    workers = min(<int64_t>at.get_num_threads(), min(<int64_t>items.size(), cells // CELLS + 1))
    task.memory_size = (workspace_size(task.texts, frames) + 63) // 64 * 64
    memory = at.empty((workers, <int64_t>task.memory_size), at.kByte)
    task.memory = <uint8_t*>memory.mutable_data_ptr()
    task.mask = <int32_t*>mask.mutable_data_ptr()
    task.rows, task.row = mask.size(1), mask.size(2)
    task.items, task.count = items.data(), items.size()
    next_item.store(0)
    not_ordinary.store(-1)
    task.next_item, task.not_ordinary = &next_item, &not_ordinary
    at.parallel_for(0, workers, 1, search_items, &task)
    if not_ordinary.load() >= 0:
        with gil:
            raise ValueError(
                "argument 'scores' must have no nan and no inf where a path can pass, and no sums beyond float32; "
                f"item {not_ordinary.load()} has (-inf is allowed)"
            )
    return mask


cdef at.Tensor monotonic_alignment_meta(
    const at.Tensor& scores, const at.Tensor& text_lengths, const at.Tensor& frame_lengths
) except * nogil:
    return at.empty_like(scores, scores.options().dtype(at.kInt), at.MemoryFormat.Contiguous)


# For every device, so that scores elsewhere get the message of the accessor, which says what to do.
define(
    b"interop_experiments::monotonic_alignment",
    b"(Tensor scores, Tensor text_lengths, Tensor frame_lengths) -> Tensor",
    Tag.pt2_compliant_tag,
)
impl(b"interop_experiments::monotonic_alignment", b"CompositeExplicitAutograd", monotonic_alignment)
impl(b"interop_experiments::monotonic_alignment", b"Meta", monotonic_alignment_meta)


def search(torch.Tensor scores not None, torch.Tensor text_lengths not None, torch.Tensor frame_lengths not None):
    """The best monotonic path of each item, as 0 and 1 in a new contiguous int32 tensor of the sizes of `scores`.

    Parameters
    ----------
    scores
        float32 [batch, text, frames] on the CPU, of any strides. It is read, and not kept.
    text_lengths, frame_lengths
        int64 [batch]: what is used of each item. Scores beyond are not read, and the mask is 0 there.
    """
    cdef at.Tensor values = scores.cdata, texts = text_lengths.cdata, frames = frame_lengths.cdata, mask
    with nogil:
        mask = monotonic_alignment(values, texts, frames)
    return torch.wrap(mask)
