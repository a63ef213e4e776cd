# cython: cdivision=True
# The operators of torch_cluster for the CPU: knn, radius, fps, graclus and grid, with its schemas.
#
# knn and radius search k-d trees. The trees are divided, and visited, in the order of those of the original, and the
# arithmetic is that of the element type, so results are equal: the order of neighbours, which of several points at one
# distance are found, and which are left out beyond max_num_neighbors. What differs is how the points are kept: a
# coordinate of all points together, in the order of the leaves, so that g++ makes vectors of the loop over a leaf.
#
# Points with nan or infinity have no finite distance to any point, so no search finds them: trees leave them out.
#
# fps uses the same trees. A point that is farther from a leaf than all of the leaf's points are from those chosen
# before changes nothing there, so most leaves are skipped.
cimport ATen as at
from interop cimport (
    AT_ALL_TYPES, AT_FLOATING_TYPES, AT_REDUCED_FLOATING_TYPES, any_t, check_index, check_type, check_value,
    const_accessor1, constant_t, instantiate_part, instantiate_part_with, numeric_limits, opmath_t, scalar_t,
)
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.algorithm cimport upper_bound
from libcpp.optional cimport optional
from libcpp.vector cimport vector
from torch.library cimport Tag, define, impl

from torch import int64 as python_int64
from torch.library import get_ctx, register_fake

cdef extern from *:
    """
    #include <bit>
    #include <type_traits>
    #include <c10/util/BFloat16.h>
    // What arithmetic in T gives, of what arithmetic in float gave. c10's conversion to BFloat16 has a branch for nan,
    // and g++ makes no vectors of it; here nan stays nan, because the low half of those of BFloat16 is 0.
    template <class T, class Number>
    inline Number cluster_rounded(Number x) {
      if constexpr (std::is_same_v<T, c10::BFloat16>) {
        const uint32_t bits = std::bit_cast<uint32_t>(x);
        return std::bit_cast<float>((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000);
      } else {
        return static_cast<Number>(static_cast<T>(x));
      }
    }
    #define CLUSTER_ROUNDED(x) cluster_rounded<INTEROP_SCALAR>(x)
    """
    opmath_t rounded "CLUSTER_ROUNDED"(opmath_t x) noexcept nogil
    void prefetch "__builtin_prefetch"(const void*) noexcept nogil


cdef enum:
    LANES = 4          # points of a leaf that are compared together
    NEIGHBOURS = 10    # points of a leaf, for knn and radius; the original's
    SAMPLES = 64       # points of a leaf, for fps
    DEPTH = 256        # of a tree; what would lie deeper stays together in a large leaf
    QUERIES = 64       # that a thread is worth starting for
    AHEAD = 8          # nodes of a graph whose memory is fetched in advance

# Kinds of search, and how many features there are, where the number is compiled in.
cdef enum:
    NEAREST = 0
    WITHIN = 1
    ANY_FEATURES = 0   # shifted to the left by 1
    TWO_FEATURES = 1
    THREE_FEATURES = 2
    SEARCHES = 6
    FEATURES = 3

cdef enum:
    LEAF = -1


# --- trees


# The points of a leaf, or two children: the first one is the next node.
cdef struct Node:
    int64_t begin
    int64_t end
    int64_t feature  # that divides the points, or LEAF
    int64_t second


# A tree for each cloud of points. Its root is the node 2 * starts[cloud].
cdef struct Forest:
    const void* points
    const int64_t* starts   # of the clouds, in the points
    int64_t features
    int64_t leaf_size
    cbool finite_only       # leave other points out; otherwise a cloud that has any becomes leaves in its own order
    int64_t row             # from coordinate to coordinate of a point in `columns`
    void* columns           # [features, row], in the order of the leaves; as opmath_t, like all that follows
    int64_t* order          # the index of each of these points
    Node* nodes
    int64_t* sizes          # nodes of each cloud
    int64_t* finite         # whether all points of a cloud are
    void* low               # of each node that is divided: the last coordinate of the first child,
    void* high              # and the first of the second child
    void* boxes             # [clouds, 2, features]: the least and the greatest coordinates


cdef void _plant(int64_t begin, int64_t end, any_t* of) noexcept nogil:
    # Copies the points of some clouds, and divides them until leaves are small enough.
    cdef Forest* forest = <Forest*> of
    cdef const scalar_t* points = <const scalar_t*> forest.points
    cdef opmath_t* columns = <opmath_t*> forest.columns
    cdef opmath_t* column
    cdef opmath_t* box
    cdef opmath_t* other_box
    cdef Node* nodes = forest.nodes
    cdef int64_t features = forest.features, row = forest.row
    cdef int64_t cloud, first, last, i, j, node, left, right, l, r, upper, half, middle, feature, level, waiting
    cdef int64_t parents[DEPTH]
    cdef int64_t middles[DEPTH]
    cdef int64_t levels[DEPTH]
    cdef opmath_t value, defect, span, widest, spread, least, most, cut
    # For float and double a feature is as good as the widest if it is nearly as wide. In other types this is 1, and
    # trees are divided along the first feature alone.
    cdef opmath_t nearly = <opmath_t> (<scalar_t> 1 - <scalar_t> 0.00001)
    cdef vector[char] memory
    memory.resize(2 * (DEPTH + 1) * features * sizeof(opmath_t))
    box = <opmath_t*> memory.data()
    for cloud in range(begin, end):
        first = forest.starts[cloud]
        forest.sizes[cloud], forest.finite[cloud] = 0, 1
        if forest.starts[cloud + 1] == first:
            continue
        last = first
        for i in range(first, forest.starts[cloud + 1]):
            defect = 0
            for j in range(features):
                value = <opmath_t> points[i * features + j]
                columns[j * row + last] = value
                defect = defect + (value - value)  # nan, unless it is finite
            forest.order[last] = i
            if defect == 0:
                last += 1
            else:
                forest.finite[cloud] = 0
                last += 0 if forest.finite_only else 1
        node = 2 * first
        if not forest.finite[cloud] and not forest.finite_only:
            left = first
            while left < last:
                nodes[node].begin, nodes[node].end = left, min(left + forest.leaf_size, last)
                nodes[node].feature = LEAF
                left = nodes[node].end
                node += 1
            forest.sizes[cloud] = node - 2 * first
            continue
        for j in range(features):
            column = columns + j * row
            least, most = column[first], column[first]
            for i in range(first + 1, last):
                least = column[i] if column[i] < least else least
                most = column[i] if column[i] > most else most
            box[j], box[features + j] = least, most
        other_box = <opmath_t*> forest.boxes + 2 * cloud * features
        for j in range(2 * features):
            other_box[j] = box[j]
        left, right, level, waiting = first, last, 0, 0
        while True:
            nodes[node].begin, nodes[node].end, nodes[node].feature = left, right, LEAF
            if right - left <= forest.leaf_size or level == DEPTH:
                if waiting == 0:
                    break
                waiting -= 1
                node += 1
                nodes[parents[waiting]].second = node
                left, right, level = middles[waiting], nodes[parents[waiting]].end, levels[waiting]
                other_box = box + 2 * (waiting + 1) * features
                for j in range(2 * features):
                    box[j] = other_box[j]
                continue
            # Of the features along which the box is widest, the one along which the points are.
            widest = rounded(box[features] - box[0])
            for j in range(1, features):
                span = rounded(box[features + j] - box[j])
                widest = span if span > widest else widest
            feature, spread = 0, -1
            for j in range(features):
                if rounded(box[features + j] - box[j]) > nearly * widest:
                    column = columns + j * row
                    least, most = column[left], column[left]
                    for i in range(left + 1, right):
                        least = column[i] if column[i] < least else least
                        most = column[i] if column[i] > most else most
                    span = rounded(most - least)
                    if span > spread:
                        feature, spread = j, span
            column = columns + feature * row
            least, most = column[left], column[left]
            for i in range(left + 1, right):
                least = column[i] if column[i] < least else least
                most = column[i] if column[i] > most else most
            # In the middle of the box, or where the points begin.
            cut = <opmath_t> (rounded(box[feature] + box[features + feature]) / 2)
            cut = least if cut < least else (most if cut > most else cut)
            # Points below the cut first, then those on it.
            l, r = left, right - 1
            while True:
                while l <= r and column[l] < cut:
                    l += 1
                while r > left and l <= r and column[r] >= cut:
                    r -= 1
                if l > r or r == left:
                    break
                for j in range(features):
                    value = columns[j * row + l]
                    columns[j * row + l] = columns[j * row + r]
                    columns[j * row + r] = value
                forest.order[l], forest.order[r] = forest.order[r], forest.order[l]
                l += 1
                r -= 1
            upper, r = l, right - 1
            while True:
                while l <= r and column[l] <= cut:
                    l += 1
                while r > left and l <= r and column[r] > cut:
                    r -= 1
                if l > r or r == left:
                    break
                for j in range(features):
                    value = columns[j * row + l]
                    columns[j * row + l] = columns[j * row + r]
                    columns[j * row + r] = value
                forest.order[l], forest.order[r] = forest.order[r], forest.order[l]
                l += 1
                r -= 1
            half = left + (right - left) // 2
            middle = upper if upper > half else (l if l < half else half)
            most, least = column[left], column[middle]
            for i in range(left + 1, middle):
                most = column[i] if column[i] > most else most
            for i in range(middle + 1, right):
                least = column[i] if column[i] < least else least
            nodes[node].feature = feature
            (<opmath_t*> forest.low)[node] = most
            (<opmath_t*> forest.high)[node] = least
            parents[waiting], middles[waiting], levels[waiting] = node, middle, level + 1
            other_box = box + 2 * (waiting + 1) * features
            for j in range(2 * features):
                other_box[j] = box[j]
            other_box[feature] = cut
            box[features + feature] = cut
            waiting += 1
            node, right, level = node + 1, middle, level + 1
        forest.sizes[cloud] = node + 1 - 2 * first


cdef at.Tensor plant(Forest* forest, const at.Tensor& points, const vector[int64_t]& starts) except * nogil:
    # Makes the trees, in memory that the result owns.
    cdef int64_t rows = points.size(0), features = points.size(1), clouds = <int64_t> starts.size() - 1
    cdef int64_t row = (rows + LANES + 7) // 8 * 8, size = 8 if points.element_size() == 8 else 4
    cdef int64_t bytes = (features * row + 4 * rows + 2 * clouds * features) * size
    cdef at.Tensor memory = at.empty(
        (bytes + (rows + 2 * clouds) * <int64_t> sizeof(int64_t) + 2 * rows * <int64_t> sizeof(Node),), at.kByte)
    cdef char* place = <char*> memory.mutable_data_ptr()
    forest.points = points.const_data_ptr()
    forest.starts = starts.data()
    forest.features, forest.row = features, row
    forest.nodes = <Node*> place
    place += 2 * rows * sizeof(Node)
    forest.order = <int64_t*> place
    place += rows * sizeof(int64_t)
    forest.sizes = <int64_t*> place
    place += clouds * sizeof(int64_t)
    forest.finite = <int64_t*> place
    place += clouds * sizeof(int64_t)
    forest.columns = place
    place += features * row * size
    forest.low = place
    place += 2 * rows * size
    forest.high = place
    place += 2 * rows * size
    forest.boxes = place
    at.parallel_for(
        0, clouds, 1 + 2048 * clouds // (1 + rows),
        instantiate_part(
            points.scalar_type(), b"k-d tree", _plant, AT_FLOATING_TYPES, AT_REDUCED_FLOATING_TYPES, at.kLong),
        forest)
    return memory


# --- knn, radius


cdef struct Search:
    Forest* forest
    const void* queries
    const int64_t* starts      # of the clouds, in the queries
    int64_t clouds
    int64_t limit              # neighbours of a query
    double squared_radius
    int64_t* counts            # of neighbours, for each query
    vector[int64_t]* found     # neighbours, for each part of QUERIES queries
    const int64_t* offsets     # of these parts in the result
    int64_t* result_queries
    int64_t* result_points


cdef void _search(int64_t begin, int64_t end, constant_t how, any_t* of) noexcept nogil:
    cdef Search* search = <Search*> of
    cdef Forest* forest = search.forest
    cdef Node* nodes = forest.nodes
    cdef const scalar_t* queries = <const scalar_t*> search.queries
    cdef const opmath_t* columns = <const opmath_t*> forest.columns
    cdef const opmath_t* low = <const opmath_t*> forest.low
    cdef const opmath_t* high = <const opmath_t*> forest.high
    cdef opmath_t* query
    cdef const opmath_t* box
    cdef const opmath_t* c
    cdef int64_t features = forest.features, row = forest.row, limit = search.limit
    cdef int64_t part, q, first, last, cloud, node, depth, count, i, j, lane, p, n, feature
    cdef int64_t waiting[DEPTH]
    cdef int64_t along[DEPTH]
    cdef opmath_t distances[DEPTH]
    cdef opmath_t cuts[DEPTH]
    cdef opmath_t lanes[LANES]
    cdef opmath_t distance, difference, worst, t, t1, t2, t3
    cdef vector[char] memory
    cdef vector[int64_t] indices
    cdef vector[int64_t]* found
    cdef opmath_t* gaps  # squared distances to the box of the node, for each feature
    cdef opmath_t* best
    if (<int64_t> how) >> 1 == TWO_FEATURES:
        features = 2
    elif (<int64_t> how) >> 1 == THREE_FEATURES:
        features = 3
    memory.resize((2 * features + (limit if (<int64_t> how) & 1 == NEAREST else 0)) * sizeof(opmath_t))
    gaps = <opmath_t*> memory.data()
    query = gaps + features
    best = query + features
    if (<int64_t> how) & 1 == NEAREST:
        indices.resize(limit)
    for part in range(begin, end):
        found = &search.found[part]
        first = search.starts[0] + part * QUERIES
        last = min(first + QUERIES, search.starts[search.clouds])
        if (<int64_t> how) & 1 == NEAREST:
            found.reserve((last - first) * limit)
        cloud = upper_bound(search.starts, search.starts + search.clouds + 1, first) - search.starts - 1
        for q in range(first, last):
            while q >= search.starts[cloud + 1]:
                cloud += 1
            count = 0
            if forest.sizes[cloud] == 0 or limit == 0:
                search.counts[q] = 0
                continue
            for j in range(features):
                query[j] = <opmath_t> queries[q * features + j]
            box = <const opmath_t*> forest.boxes + 2 * cloud * features
            distance = 0
            for j in range(features):
                gaps[j] = 0
                if query[j] < box[j]:
                    difference = rounded(query[j] - box[j])
                    gaps[j] = rounded(difference * difference)
                    distance = rounded(distance + gaps[j])
                if query[j] > box[features + j]:
                    difference = rounded(query[j] - box[features + j])
                    gaps[j] = rounded(difference * difference)
                    distance = rounded(distance + gaps[j])
            if (<int64_t> how) & 1 == NEAREST:
                worst = <opmath_t> numeric_limits[scalar_t].max()
            else:
                worst = <opmath_t> <scalar_t> search.squared_radius
            node, depth = 2 * forest.starts[cloud], 0
            while True:
                while nodes[node].feature != LEAF:
                    feature = nodes[node].feature
                    t, t1 = rounded(query[feature] - low[node]), rounded(query[feature] - high[node])
                    along[depth], distances[depth] = feature, distance
                    if t + t1 < 0:
                        waiting[depth], cuts[depth] = nodes[node].second, rounded(t1 * t1)
                        node = node + 1
                    else:
                        waiting[depth], cuts[depth] = node + 1, rounded(t * t)
                        node = nodes[node].second
                    depth += 1
                p = nodes[node].begin
                while p < nodes[node].end:
                    n = min(nodes[node].end - p, <int64_t> LANES)
                    for lane in range(LANES):
                        lanes[lane] = 0
                    # Squares are added four at a time, as in the original: rounding is the same.
                    j = 0
                    while j + 4 <= features:
                        c = columns + j * row + p
                        for lane in range(LANES):
                            t, t1 = rounded(query[j] - c[lane]), rounded(query[j + 1] - c[row + lane])
                            t2 = rounded(query[j + 2] - c[2 * row + lane])
                            t3 = rounded(query[j + 3] - c[3 * row + lane])
                            t = rounded(rounded(t * t) + rounded(t1 * t1))
                            t = rounded(rounded(t + rounded(t2 * t2)) + rounded(t3 * t3))
                            lanes[lane] = rounded(lanes[lane] + t)
                        j += 4
                    while j < features:
                        c = columns + j * row + p
                        for lane in range(LANES):
                            t = rounded(query[j] - c[lane])
                            lanes[lane] = rounded(lanes[lane] + rounded(t * t))
                        j += 1
                    for lane in range(n):
                        if not lanes[lane] < worst:
                            continue
                        if (<int64_t> how) & 1 == WITHIN:
                            found.push_back(forest.order[p + lane])
                            count += 1
                            if count == limit:
                                break
                            continue
                        i = count if count < limit else limit - 1
                        while i > 0 and best[i - 1] > lanes[lane]:
                            best[i] = best[i - 1]
                            indices[i] = indices[i - 1]
                            i -= 1
                        best[i] = lanes[lane]
                        indices[i] = forest.order[p + lane]
                        if count < limit:
                            count += 1
                        if count == limit:
                            worst = best[limit - 1]
                    p += LANES
                    if (<int64_t> how) & 1 == WITHIN and count == limit:
                        break
                if (<int64_t> how) & 1 == WITHIN and count == limit:
                    break
                # Back to a node whose other child may have something nearer.
                while depth > 0:
                    depth -= 1
                    feature = along[depth]
                    if waiting[depth] < 0:  # that child has been visited: its gap ends
                        gaps[feature] = cuts[depth]
                        continue
                    distance = rounded(rounded(distances[depth] + cuts[depth]) - gaps[feature])
                    if distance <= worst:
                        node = waiting[depth]
                        t, gaps[feature] = gaps[feature], cuts[depth]
                        waiting[depth], cuts[depth] = -1, t
                        depth += 1
                        break
                else:
                    break
            if (<int64_t> how) & 1 == NEAREST:
                found.insert(found.end(), indices.begin(), indices.begin() + count)
            search.counts[q] = count


cdef void write_neighbours(int64_t begin, int64_t end, void* data) noexcept nogil:
    cdef Search* search = <Search*> data
    cdef int64_t part, q, first, last, at_, i
    for part in range(begin, end):
        at_ = search.offsets[part]
        if search.found[part].size():
            memcpy(search.result_points + at_, search.found[part].data(), search.found[part].size() * sizeof(int64_t))
        first = search.starts[0] + part * QUERIES
        last = min(first + QUERIES, search.starts[search.clouds])
        for q in range(first, last):
            for i in range(search.counts[q]):
                search.result_queries[at_ + i] = q
            at_ += search.counts[q]


cdef vector[int64_t] cloud_starts(const at.Tensor& ptr, int64_t rows, const char* name) except * nogil:
    # A copy, so that nobody can change the numbers after they were checked.
    cdef const_accessor1[int64_t] values = const_accessor1[int64_t](ptr, name)
    cdef vector[int64_t] starts
    cdef int64_t i, before = 0
    check_value(values.size(0) > 0, b"argument '", name, b"' must have a number for each cloud and one more, got none")
    for i in range(values.size(0)):
        check_value(
            before <= values[i] and values[i] <= rows, b"argument '", name, b"' must ascend from 0 to at most ", rows,
            b", the number of rows, got ", values[i], b" after ", before)
        before = values[i]
        starts.push_back(before)
    return starts


cdef at.Tensor of_known_type(const at.Tensor& x) except * nogil:
    # Integers of any size are computed with as int64.
    if at.isIntegralType(x.scalar_type(), False):
        return x.to(at.kLong).contiguous()
    return x.contiguous()


cdef at.Tensor as_rows(const at.Tensor& x, const char* name) except * nogil:
    # A matrix with the first dimension of `x`, which may have no rows.
    cdef int64_t columns = 1, i
    check_value(x.dim() > 0, b"argument '", name, b"' must have a row for each point, got a scalar")
    for i in range(1, x.dim()):
        columns *= x.size(i)
    return x.reshape((x.size(0), columns))


cdef at.Tensor neighbours(
    int64_t kind, const at.Tensor& x, const at.Tensor& y, const optional[at.Tensor]& ptr_x,
    const optional[at.Tensor]& ptr_y, int64_t limit, double squared_radius,
) except * nogil:
    check_value(x.dim() == 2, b"argument 'x' must be a matrix of points, got sizes ", x.sizes())
    check_value(y.dim() == 2, b"argument 'y' must be a matrix of points, got sizes ", y.sizes())
    check_type(
        x.scalar_type() == y.scalar_type(), b"arguments 'x' and 'y' must have one dtype, got ", x.scalar_type(),
        b" and ", y.scalar_type(), b"; convert one with .to()")
    check_value(
        x.size(1) == y.size(1), b"arguments 'x' and 'y' must have as many features, got ", x.size(1), b" and ",
        y.size(1))
    check_value(
        ptr_x.has_value() == ptr_y.has_value(), b"arguments 'ptr_x' and 'ptr_y' must both be given, or neither")
    cdef vector[int64_t] starts_x, starts_y, counts, offsets
    cdef vector[vector[int64_t]] found
    if ptr_x.has_value():
        starts_x = cloud_starts(ptr_x.value(), x.size(0), b"ptr_x")
        starts_y = cloud_starts(ptr_y.value(), y.size(0), b"ptr_y")
        check_value(
            starts_x.size() == starts_y.size(), b"arguments 'ptr_x' and 'ptr_y' must be for as many clouds, got ",
            <int64_t> starts_x.size() - 1, b" and ", <int64_t> starts_y.size() - 1)
    else:
        starts_x.push_back(0)
        starts_x.push_back(x.size(0))
        starts_y.push_back(0)
        starts_y.push_back(y.size(0))
    cdef at.Tensor points = of_known_type(x), queries = of_known_type(y), _memory, result
    cdef int64_t parts = (starts_y.back() - starts_y.front() + QUERIES - 1) // QUERIES, i, how
    cdef Forest forest
    cdef Search search
    if points.numel() == 0 or parts == 0:
        return at.empty((2, 0), x.options().dtype(at.kLong))
    forest.leaf_size, forest.finite_only = NEIGHBOURS, True
    _memory = plant(&forest, points, starts_x)
    counts.resize(y.size(0))
    found.resize(parts)
    search.forest, search.queries = &forest, queries.const_data_ptr()
    search.starts, search.clouds = starts_y.data(), <int64_t> starts_y.size() - 1
    search.limit, search.squared_radius = min(limit, x.size(0)), squared_radius
    search.counts, search.found = counts.data(), found.data()
    how = (TWO_FEATURES if x.size(1) == 2 else (THREE_FEATURES if x.size(1) == 3 else ANY_FEATURES)) << 1 | kind
    at.parallel_for(
        0, parts, 1,
        instantiate_part_with(
            how, SEARCHES, points.scalar_type(), b"knn" if kind == NEAREST else b"radius", _search, AT_FLOATING_TYPES,
            AT_REDUCED_FLOATING_TYPES, at.kLong),
        &search)
    offsets.push_back(0)
    for i in range(parts):
        offsets.push_back(offsets.back() + <int64_t> found[i].size())
    result = at.empty((2, offsets.back()), x.options().dtype(at.kLong))
    search.offsets = offsets.data()
    search.result_queries = <int64_t*> result.mutable_data_ptr()
    search.result_points = search.result_queries + offsets.back()
    at.parallel_for(0, parts, 64, write_neighbours, &search)
    return result


cdef at.Tensor knn(
    const at.Tensor& x, const at.Tensor& y, const optional[at.Tensor]& ptr_x, const optional[at.Tensor]& ptr_y,
    int64_t k, cbool cosine, int64_t num_workers,
) except * nogil:
    check_value(not cosine, b"argument 'cosine' must be False on the CPU; normalise 'x' and 'y' instead")
    check_value(k >= 0, b"argument 'k' must not be negative, got ", k)
    return neighbours(NEAREST, x, y, ptr_x, ptr_y, k, 0)


cdef at.Tensor radius(
    const at.Tensor& x, const at.Tensor& y, const optional[at.Tensor]& ptr_x, const optional[at.Tensor]& ptr_y,
    double r, int64_t max_num_neighbors, int64_t num_workers,
) except * nogil:
    # As in the original, a negative max_num_neighbors is no limit.
    return neighbours(
        WITHIN, x, y, ptr_x, ptr_y, max_num_neighbors if max_num_neighbors >= 0 else INT64_MAX,
        min(r * r, 9e18) if at.isIntegralType(x.scalar_type(), False) else r * r)


# --- fps


cdef struct Sampling:
    Forest* forest
    const int64_t* offsets  # of the clouds, in the result
    const int64_t* first    # the point to begin with, for each cloud
    void* distances         # of each point to the nearest one that is chosen
    int64_t* result


cdef void _sample(int64_t begin, int64_t end, constant_t how, any_t* of) noexcept nogil:
    cdef Sampling* sampling = <Sampling*> of
    cdef Forest* forest = sampling.forest
    cdef const opmath_t* columns = <const opmath_t*> forest.columns
    cdef const scalar_t* points = <const scalar_t*> forest.points
    cdef opmath_t* point
    cdef const opmath_t* column
    cdef opmath_t* distances = <opmath_t*> sampling.distances
    cdef opmath_t* box
    cdef opmath_t* boxes
    cdef opmath_t* most
    cdef int64_t features = forest.features, row = forest.row
    cdef int64_t cloud, i, j, p, node, leaf, count, wanted, chosen, index
    cdef cbool nearer
    cdef opmath_t value, least, greatest, distance, total
    cdef vector[char] memory
    cdef vector[Node] leaves
    cdef vector[int64_t] farthest
    if how == TWO_FEATURES:
        features = 2
    elif how == THREE_FEATURES:
        features = 3
    for cloud in range(begin, end):
        wanted = sampling.offsets[cloud + 1] - sampling.offsets[cloud]
        if wanted == 0:
            continue
        leaves.clear()
        for node in range(2 * forest.starts[cloud], 2 * forest.starts[cloud] + forest.sizes[cloud]):
            if forest.nodes[node].feature == LEAF:
                leaves.push_back(forest.nodes[node])
        count = leaves.size()
        memory.resize((count * (2 * features + 1) + features) * sizeof(opmath_t))
        farthest.resize(count)
        most = <opmath_t*> memory.data()
        boxes = most + count
        point = boxes + 2 * count * features
        for leaf in range(count):
            for j in range(features):
                column = columns + j * row
                least, greatest = column[leaves[leaf].begin], column[leaves[leaf].begin]
                for p in range(leaves[leaf].begin, leaves[leaf].end):
                    least = column[p] if column[p] < least else least
                    greatest = column[p] if column[p] > greatest else greatest
                boxes[2 * leaf * features + j], boxes[(2 * leaf + 1) * features + j] = least, greatest
            for p in range(leaves[leaf].begin, leaves[leaf].end):
                distances[p] = numeric_limits[opmath_t].upper_bound()
        chosen = sampling.first[cloud]
        for i in range(wanted):
            sampling.result[sampling.offsets[cloud] + i] = chosen
            if i + 1 == wanted:
                break
            for j in range(features):
                point[j] = <opmath_t> points[chosen * features + j]
            index = -1
            for leaf in range(count):
                nearer = True
                if i > 0 and forest.finite[cloud]:
                    # The distance to the box is rounded as those to points are, so no point is nearer.
                    box = boxes + 2 * leaf * features
                    total = 0
                    for j in range(features):
                        value = rounded(point[j] - box[features + j])
                        value = value if value > 0 else <opmath_t> 0
                        value = rounded(box[j] - point[j]) if box[j] > point[j] else value
                        total = total + rounded(value * value)
                    nearer = not rounded(total) >= most[leaf]
                if nearer:
                    for p in range(leaves[leaf].begin, leaves[leaf].end):
                        total = 0
                        for j in range(features):
                            value = rounded(columns[j * row + p] - point[j])
                            total = total + rounded(value * value)
                        distance = rounded(total)
                        value = distances[p]
                        # nan stays nan, as in torch.min().
                        distances[p] = value if (value < distance) | (value != value) else distance
                    farthest[leaf] = forest.order[leaves[leaf].begin]
                    most[leaf] = distances[leaves[leaf].begin]
                    for p in range(leaves[leaf].begin + 1, leaves[leaf].end):
                        # The first of equal ones, and nan before all, as in torch.argmax().
                        if (
                            distances[p] > most[leaf] or distances[p] == most[leaf]
                            and forest.order[p] < farthest[leaf] or distances[p] != distances[p]
                            and most[leaf] == most[leaf]
                        ):
                            most[leaf], farthest[leaf] = distances[p], forest.order[p]
                if (
                    index < 0 or most[leaf] > greatest or most[leaf] == greatest and farthest[leaf] < index
                    or most[leaf] != most[leaf] and greatest == greatest
                ):
                    greatest, index = most[leaf], farthest[leaf]
            chosen = index


cdef at.Tensor fps(
    const at.Tensor& src, const at.Tensor& ptr, const at.Tensor& ratio, cbool random_start
) except * nogil:
    cdef at.Tensor points = of_known_type(as_rows(src, b"src"))
    cdef vector[int64_t] starts = cloud_starts(ptr, src.size(0), b"ptr")
    cdef int64_t clouds = <int64_t> starts.size() - 1, i, how
    cdef at.Tensor sizes, counts, _memory, distances, result, first
    cdef vector[int64_t] offsets, begins
    cdef Forest forest
    cdef Sampling sampling
    sizes = at.sub(ptr.narrow(0, 1, clouds), ptr.narrow(0, 0, clouds))
    # In float32, as the original computes it.
    counts = at.ceil(at.mul(sizes.to(at.kFloat), ratio)).to(at.kLong).contiguous()
    check_value(
        counts.dim() == 1 and counts.numel() == clouds,
        b"argument 'ratio' must have one number, or one for each of the ",
        clouds, b" clouds, got sizes ", ratio.sizes())
    if random_start:
        first = at.floor(at.mul(at.rand((clouds,), at.kDouble), sizes)).to(at.kLong)
    else:
        first = at.zeros_like(sizes)
    offsets.push_back(0)
    for i in range(clouds):
        check_value(
            counts.const_data_ptr[int64_t]()[i] >= 0, b"argument 'ratio' must be finite and not negative, got ",
            counts.const_data_ptr[int64_t]()[i], b" points of cloud ", i)
        offsets.push_back(offsets.back() + counts.const_data_ptr[int64_t]()[i])
        begins.push_back(starts[i] + first.const_data_ptr[int64_t]()[i])
    result = at.empty((offsets.back(),), ptr.options())
    if offsets.back() == 0:
        return result
    check_value(points.size(1) > 0, b"argument 'src' must have a feature at least, got sizes ", src.sizes())
    forest.leaf_size, forest.finite_only = SAMPLES, False
    _memory = plant(&forest, points, starts)
    distances = at.empty((points.size(0), 8), at.kByte)
    sampling.forest, sampling.offsets, sampling.first = &forest, offsets.data(), begins.data()
    sampling.distances, sampling.result = distances.mutable_data_ptr(), <int64_t*> result.mutable_data_ptr()
    how = TWO_FEATURES if points.size(1) == 2 else (THREE_FEATURES if points.size(1) == 3 else ANY_FEATURES)
    at.parallel_for(
        0, clouds, 1,
        instantiate_part_with(
            how, FEATURES, points.scalar_type(), b"fps", _sample, AT_FLOATING_TYPES, AT_REDUCED_FLOATING_TYPES,
            at.kLong),
        &sampling)
    return result


# --- graclus


cdef struct Matching:
    const int64_t* rowptr
    const int64_t* col
    const int64_t* order
    const void* weight  # of each edge, if they are weighted
    int64_t nodes
    int64_t edges
    int64_t wrong_edge  # one whose node does not exist, or -1
    int64_t wrong_node  # one whose edges do not exist, or -1
    uint8_t* matched
    int64_t* result


cdef enum:
    UNWEIGHTED, WEIGHTED, MATCHINGS


cdef void _match(int64_t begin, int64_t end, constant_t how, any_t* of) noexcept nogil:
    cdef Matching* matching = <Matching*> of
    cdef const scalar_t* weight = <const scalar_t*> matching.weight
    cdef const int64_t* rowptr = matching.rowptr
    cdef const int64_t* col = matching.col
    cdef const int64_t* order = matching.order
    cdef int64_t* result = matching.result
    cdef uint8_t* matched = matching.matched
    cdef int64_t i, u, v, e, last, chosen, nodes = matching.nodes, edges = matching.edges
    cdef scalar_t most
    for i in range(begin, end):
        if i + AHEAD < end:
            prefetch(rowptr + order[i + AHEAD])
        u = order[i]
        if matched[u]:
            continue
        matched[u] = how == UNWEIGHTED  # an edge from a node to itself counts only with a weight, as in the original
        chosen, most, e, last = u, 0, rowptr[u], rowptr[u + 1]
        if e < 0 or last < e or last > edges:
            matching.wrong_node = u
            return
        while e < last:
            # Weights lie together, and `matched` does not: it comes second.
            if how == UNWEIGHTED or weight[e] >= most:
                v = col[e]
                if <uint64_t> v >= <uint64_t> nodes:
                    matching.wrong_edge = e
                    return
                if not matched[v]:
                    chosen = v
                    if how == UNWEIGHTED:
                        break
                    most = weight[e]
            e += 1
        matched[u] = matched[chosen] = 1
        result[u] = result[chosen] = min(u, chosen)


cdef at.Tensor graclus(
    const at.Tensor& rowptr, const at.Tensor& col, const optional[at.Tensor]& weight, const optional[at.Tensor]& order
) except * nogil:
    check_value(col.dim() == 1, b"argument 'col' must have 1 dimension, got sizes ", col.sizes())
    cdef const_accessor1[int64_t] rows = const_accessor1[int64_t](rowptr.contiguous(), b"rowptr")
    cdef int64_t nodes = rows.size(0) - 1, i
    check_value(nodes >= 0, b"argument 'rowptr' must have a number for each node and one more, got none")
    cdef const_accessor1[int64_t] columns = const_accessor1[int64_t](col.contiguous(), b"col")
    cdef at.Tensor weights, result = at.empty((nodes,), rowptr.options())
    cdef vector[uint8_t] matched = vector[uint8_t](nodes)
    cdef at.Tensor permutation
    cdef at.ScalarType dtype = at.kFloat
    cdef Matching matching
    matching.weight = NULL
    if order.has_value():
        permutation = order.value().contiguous()
        check_value(
            permutation.dim() == 1 and permutation.numel() == nodes,
            b"argument 'order' must be a permutation of the ", nodes, b" nodes, got sizes ", permutation.sizes())
    else:
        permutation = at.randperm(nodes, rowptr.options())
    cdef const_accessor1[int64_t] ordered = const_accessor1[int64_t](permutation, b"order")
    if order.has_value():
        for i in range(nodes):
            check_index(
                <uint64_t> ordered[i] < <uint64_t> nodes and not matched[ordered[i]],
                b"argument 'order' must have each of the ", nodes, b" nodes once, got ", ordered[i])
            matched[ordered[i]] = 1
        matched.assign(nodes, 0)
    if weight.has_value():
        weights = weight.value().contiguous()
        check_value(
            weights.dim() == 1 and weights.numel() == col.numel(),
            b"argument 'weight' must have a number for each of the ",
            col.numel(), b" edges, got sizes ", weights.sizes())
        matching.weight, dtype = weights.const_data_ptr(), weights.scalar_type()
    matching.rowptr, matching.col, matching.order = rows.data(), columns.data(), ordered.data()
    matching.nodes, matching.edges, matching.wrong_edge, matching.wrong_node = nodes, col.numel(), -1, -1
    matching.matched = matched.data()
    matching.result = <int64_t*> result.mutable_data_ptr()
    # On one thread: which nodes are free depends on all before.
    at.parallel_for(
        0, nodes, nodes + 1,
        instantiate_part_with(
            WEIGHTED if weight.has_value() else UNWEIGHTED, MATCHINGS, dtype, b"graclus", _match, AT_ALL_TYPES,
            AT_REDUCED_FLOATING_TYPES),
        &matching)
    check_value(
        matching.wrong_node < 0, b"argument 'rowptr' must ascend from 0 to at most ", col.numel(),
        b", the number of edges; node ", matching.wrong_node, b" has others")
    check_index(
        matching.wrong_edge < 0, b"argument 'col' must have nodes from 0 to ", nodes - 1, b", got ",
        columns[matching.wrong_edge] if matching.wrong_edge >= 0 else 0, b" for edge ", matching.wrong_edge)
    return result


cdef at.Tensor graclus_meta(
    const at.Tensor& rowptr, const at.Tensor& col, const optional[at.Tensor]& weight, const optional[at.Tensor]& order
) except * nogil:
    return at.empty_symint((rowptr.sym_size(0) - 1,), rowptr.options())


# --- grid


cdef struct Grid:
    const void* points
    const void* start
    const void* size
    void* corners           # [2, features]: the least and the greatest coordinates
    const int64_t* strides
    int64_t features
    int64_t* result


cdef void _measure(int64_t begin, int64_t end, constant_t how, any_t* of) noexcept nogil:
    cdef Grid* grid = <Grid*> of
    cdef const scalar_t* points = <const scalar_t*> grid.points
    cdef scalar_t* corners = <scalar_t*> grid.corners
    cdef int64_t features = grid.features, i, j
    cdef scalar_t value
    if how == TWO_FEATURES:
        features = 2
    elif how == THREE_FEATURES:
        features = 3
    for j in range(features):
        corners[j] = corners[features + j] = points[j]
    for i in range(begin, end):
        for j in range(features):
            value = points[i * features + j]
            corners[j] = value if value < corners[j] else corners[j]
            corners[features + j] = value if value > corners[features + j] else corners[features + j]


cdef void _place(int64_t begin, int64_t end, constant_t how, any_t* of) noexcept nogil:
    cdef Grid* grid = <Grid*> of
    cdef const scalar_t* points = <const scalar_t*> grid.points
    cdef const scalar_t* start = <const scalar_t*> grid.start
    cdef const scalar_t* size = <const scalar_t*> grid.size
    cdef const int64_t* strides = grid.strides
    cdef int64_t* result = grid.result
    cdef int64_t features = grid.features, i, j, cell
    cdef scalar_t offset
    if how == TWO_FEATURES:
        features = 2
    elif how == THREE_FEATURES:
        features = 3
    for i in range(begin, end):
        cell = 0
        for j in range(features):
            offset = points[i * features + j] - start[j]
            cell += <int64_t> (<scalar_t> (offset / size[j])) * strides[j]
        result[i] = cell


cdef at.Tensor corner(
    const optional[at.Tensor]& given, const at.Tensor& of_points, const char* name
) except * nogil:
    # Where the grid begins or ends: as given, or where the points do.
    if not given.has_value():
        return of_points
    check_value(
        given.value().numel() == of_points.numel(), b"argument '", name, b"' must have a number for each of the ",
        of_points.numel(), b" dimensions, got sizes ", given.value().sizes())
    return given.value().reshape((-1,))


cdef at.Tensor grid(
    const at.Tensor& pos, const at.Tensor& size, const optional[at.Tensor]& start, const optional[at.Tensor]& end
) except * nogil:
    cdef at.Tensor points = as_rows(pos, b"pos"), first, last, corners, cells
    cdef at.Tensor sizes = size.reshape((-1,))
    cdef at.Tensor result = at.empty((points.size(0),), pos.options().dtype(at.kLong))
    cdef at.ScalarType dtype = at.promoteTypes(points.scalar_type(), sizes.scalar_type())
    cdef vector[int64_t] strides
    cdef int64_t j, how
    cdef Grid task
    check_value(
        sizes.size(0) == points.size(1), b"argument 'size' must have a number for each of the ", points.size(1),
        b" dimensions, got sizes ", size.sizes())
    if points.numel() == 0:
        return result.zero_()
    points = points.contiguous()
    corners = at.empty((2, points.size(1)), points.options())
    task.points, task.corners, task.features = points.const_data_ptr(), corners.mutable_data_ptr(), points.size(1)
    how = TWO_FEATURES if points.size(1) == 2 else (THREE_FEATURES if points.size(1) == 3 else ANY_FEATURES)
    if not start.has_value() or not end.has_value():
        at.parallel_for(
            0, points.size(0), points.size(0),
            instantiate_part_with(
                how, FEATURES, points.scalar_type(), b"grid", _measure, AT_ALL_TYPES, AT_REDUCED_FLOATING_TYPES),
            &task)
    first, last = corner(start, corners.select(0, 0), b"start"), corner(end, corners.select(0, 1), b"end")
    cells = at.add(at.true_divide(at.sub(last, first), sizes).to(at.kLong), 1).contiguous()
    if not at.isFloatingType(dtype) or points.scalar_type() != dtype or first.scalar_type() != dtype:
        # Subtracted in one type, and divided in another one: whole numbers, for example, as float32.
        points, first = at.sub(points, first), at.zeros_like(first)
        dtype = at.promoteTypes(points.scalar_type(), sizes.scalar_type())
        dtype = dtype if at.isFloatingType(dtype) else at.kFloat
    points, first, sizes = points.to(dtype).contiguous(), first.to(dtype).contiguous(), sizes.to(dtype).contiguous()
    strides.push_back(1)
    for j in range(points.size(1) - 1):
        strides.push_back(strides.back() * cells.const_data_ptr[int64_t]()[j])
    task.points, task.start, task.size = points.const_data_ptr(), first.const_data_ptr(), sizes.const_data_ptr()
    task.strides = strides.data()
    task.result = <int64_t*> result.mutable_data_ptr()
    at.parallel_for(
        0, points.size(0), 1 + 16384 // points.size(1),
        instantiate_part_with(how, FEATURES, dtype, b"grid", _place, AT_FLOATING_TYPES, AT_REDUCED_FLOATING_TYPES),
        &task)
    return result


cdef at.Tensor grid_meta(
    const at.Tensor& pos, const at.Tensor& size, const optional[at.Tensor]& start, const optional[at.Tensor]& end
) except * nogil:
    return at.empty_symint((pos.sym_size(0),), pos.options().dtype(at.kLong))


# --- operators


define(
    b"ports_cluster::graclus", b"(Tensor rowptr, Tensor col, Tensor? weight=None, Tensor? order=None) -> Tensor",
    Tag.pt2_compliant_tag, Tag.nondeterministic_seeded)
impl(b"ports_cluster::graclus", b"CPU", graclus)
impl(b"ports_cluster::graclus", b"Meta", graclus_meta)

define(
    b"ports_cluster::grid", b"(Tensor pos, Tensor size, Tensor? start=None, Tensor? end=None) -> Tensor",
    Tag.pt2_compliant_tag)
impl(b"ports_cluster::grid", b"CPU", grid)
impl(b"ports_cluster::grid", b"Meta", grid_meta)

# The size of these results depends on the data, which only a fake kernel in Python can say.
define(
    b"ports_cluster::knn",
    b"(Tensor x, Tensor y, Tensor? ptr_x, Tensor? ptr_y, int k, bool cosine=False, int num_workers=1) -> Tensor",
    Tag.pt2_compliant_tag, Tag.dynamic_output_shape)
define(
    b"ports_cluster::radius",
    b"(Tensor x, Tensor y, Tensor? ptr_x, Tensor? ptr_y, float r, int max_num_neighbors, int num_workers=1) -> Tensor",
    Tag.pt2_compliant_tag, Tag.dynamic_output_shape)
define(
    b"ports_cluster::fps", b"(Tensor src, Tensor ptr, Tensor ratio, bool random_start) -> Tensor",
    Tag.pt2_compliant_tag, Tag.dynamic_output_shape, Tag.nondeterministic_seeded)
impl(b"ports_cluster::knn", b"CPU", knn)
impl(b"ports_cluster::radius", b"CPU", radius)
impl(b"ports_cluster::fps", b"CPU", fps)


def pairs_of_unknown_number(x, *_, **__):
    return x.new_empty((2, get_ctx().new_dynamic_size()), dtype=python_int64)


def indices_of_unknown_number(src, ptr, *_, **__):
    return ptr.new_empty((get_ctx().new_dynamic_size(),))


register_fake("ports_cluster::knn", pairs_of_unknown_number)
register_fake("ports_cluster::radius", pairs_of_unknown_number)
register_fake("ports_cluster::fps", indices_of_unknown_number)
