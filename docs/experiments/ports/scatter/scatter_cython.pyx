# cython: cdivision=True
# Sums, means, products and extremes over groups of rows, and rows given to groups: torch_scatter's operators, for the
# CPU.
#
# A tensor of rows is [batch, row, column] here, whatever its sizes, and one of groups [batch, group, column]. What says
# which rows a group has is one of these:
#
# - csr: a pointer for each group to its first row, and one more to the end of the last. The groups lie together.
# - coo: a sorted index, the group of each row. The groups lie together too.
# - scatter: an index in any order, which may be another one in each column.
#
# A sum is the adjoint of giving each row what its group has, and a mean that of giving it its part of it. An extreme
# is that of putting what a group has into one of its rows. So each kernel is the backward of another one, and second
# derivatives come by themselves.
cimport ATen as at
from interop cimport (
    AT_ALL_TYPES, any_t, check_index, check_type, check_value, constant_t, get0, instantiate_part_with, make_tuple,
    numeric_limits, opmath_t, scalar_t, tuple2,
)
from libc.stdint cimport int64_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.atomic cimport atomic
from libcpp.optional cimport optional
from libcpp.vector cimport vector
from torch.autograd cimport Context
from torch.library cimport Operator, Tag, define, impl, register_autograd


cdef enum:
    WIDTH = 32  # columns of a group that are folded together, in registers; half as many if they have 8 bytes
    LONG = 256  # columns that are summed together, in the nearest cache, so that memory is read row by row
    SHORT = 256  # bytes of a row, below which several rows are copied at once
    GRAIN = 32768  # numbers that a thread is worth starting for, as in ATen
    SHARED = 128  # bytes that two threads should not both write to: processors fetch two lines of their cache at once


# What is done with the rows of a group that lie together.
cdef enum:
    SUM, MEAN, MIN, MAX, REPEAT, SHARE, SEGMENT_WAYS


# What is done with rows in any order. The second half is for an index that is another one in each column.
cdef enum:
    ADD, MULTIPLY, LEAST, MOST, TAKE, SCATTER_WAYS
    EACH_COLUMN = SCATTER_WAYS
    ALL_SCATTER_WAYS = 2 * SCATTER_WAYS


cdef struct Task:
    const void* source
    void* result
    int64_t* places  # of each extreme: the row that it is from, or `rows` if its group has none
    const int64_t* index
    int64_t step     # of the index, from one batch item to the next: 0 if all have the same
    int64_t batch
    int64_t rows
    int64_t groups
    int64_t columns
    cbool pointers   # the index is of csr
    cbool may_miss   # a row may be in no group: its index is then `groups`
    atomic[int64_t]* wrong  # where an index is wrong, or -1


cdef inline void fold(
    int64_t batch, int64_t group, int64_t first, int64_t end, int64_t begin, int64_t width, constant_t how, any_t* of
) noexcept nogil:
    # `width` columns, at most LONG, of the rows first:end, which are not none.
    cdef Task* task = <Task*> of
    cdef int64_t columns = task.columns, place = (batch * task.groups + group) * columns + begin, i, k
    cdef const scalar_t* row = <const scalar_t*> task.source + (batch * task.rows + first) * columns + begin
    cdef scalar_t* result = <scalar_t*> task.result + place
    cdef int64_t count = end - first
    cdef opmath_t kept[LONG]
    cdef opmath_t* totals = &kept[0]
    cdef int64_t places[LONG]
    cdef opmath_t value
    cdef int64_t wide = WIDTH if sizeof(opmath_t) <= 4 else WIDTH // 2
    cdef cbool adds = how == SUM or how == MEAN
    if adds and width > wide and sizeof(opmath_t) == sizeof(scalar_t):
        totals = <opmath_t*> result
    for k in range(width):
        if how == MIN:
            totals[k] = <opmath_t> numeric_limits[scalar_t].upper_bound()
        elif how == MAX:
            totals[k] = <opmath_t> numeric_limits[scalar_t].lower_bound()
        else:
            totals[k] = <opmath_t> (<opmath_t> 0 + <opmath_t> row[k])  # the sum of -0. alone is 0.
        places[k] = first
    if adds:
        row += columns
    for i in range(1 if adds else 0, count):
        for k in range(width):
            value = <opmath_t> row[k]
            if how == MIN:
                places[k] = first + i if value < totals[k] else places[k]
                totals[k] = value if value < totals[k] else totals[k]
            elif how == MAX:
                places[k] = first + i if value > totals[k] else places[k]
                totals[k] = value if value > totals[k] else totals[k]
            else:
                totals[k] = <opmath_t> (totals[k] + value)
        row += columns
    for k in range(width):
        if how == MEAN:
            # 0.5 is 0 as an integer. The quotient of two integers is rounded to zero, as in C.
            if <opmath_t> 0.5 == 0:
                result[k] = <scalar_t> (<int64_t> totals[k] // count)
            else:
                result[k] = <scalar_t> (totals[k] / <opmath_t> count)
        else:
            result[k] = <scalar_t> totals[k]
        if how == MIN or how == MAX:
            task.places[place + k] = places[k]


cdef inline void without_rows(int64_t batch, int64_t begin, int64_t end, constant_t how, any_t* of) noexcept nogil:
    # The groups begin:end of a batch item have no rows.
    cdef Task* task = <Task*> of
    cdef scalar_t* result = <scalar_t*> task.result
    cdef int64_t i, first = batch * task.groups
    for i in range((first + begin) * task.columns, (first + end) * task.columns):
        result[i] = 0
        if how == MIN or how == MAX:
            task.places[i] = task.rows


cdef inline void without_group(int64_t batch, int64_t begin, int64_t end, any_t* of) noexcept nogil:
    # The rows begin:end of a batch item are in no group.
    cdef Task* task = <Task*> of
    cdef scalar_t* result = <scalar_t*> task.result
    cdef int64_t i, first = batch * task.rows
    for i in range((first + begin) * task.columns, (first + end) * task.columns):
        result[i] = 0


cdef inline void give(
    int64_t batch, int64_t group, int64_t first, int64_t end, constant_t how, any_t* of
) noexcept nogil:
    # Gives what a group has to its rows first:end, which are not none.
    cdef Task* task = <Task*> of
    cdef int64_t columns = task.columns, total = (end - first) * columns, done = columns, i, k
    cdef const scalar_t* source = <const scalar_t*> task.source + (batch * task.groups + group) * columns
    cdef scalar_t* row = <scalar_t*> task.result + (batch * task.rows + first) * columns
    cdef scalar_t one
    if how == SHARE:
        for k in range(columns):
            row[k] = <scalar_t> (<opmath_t> source[k] / <opmath_t> (end - first))
    elif columns > 1:
        memcpy(row, source, columns * sizeof(scalar_t))
    else:
        row[0] = source[0]
    if columns == 1:
        one = row[0]
        for i in range(1, total):
            row[i] = one
        return
    if how != SHARE and columns * sizeof(scalar_t) >= SHORT:
        while done < total:
            memcpy(row + done, source, columns * sizeof(scalar_t))
            done += columns
        return
    # The rows are contiguous: copy those that are written behind themselves, twice as many each time.
    while done < total:
        memcpy(row + done, row, min(done, total - done) * sizeof(scalar_t))
        done += min(done, total - done)


cdef inline void group_of_rows(
    int64_t batch, int64_t group, int64_t first, int64_t end, constant_t how, any_t* of
) noexcept nogil:
    cdef Task* task = <Task*> of
    cdef int64_t columns = task.columns, begin = 0
    cdef int64_t wide = WIDTH if sizeof(opmath_t) <= 4 else WIDTH // 2
    if how == REPEAT or how == SHARE:
        give(batch, group, first, end, how, of)
        return
    if columns == 1:
        fold(batch, group, first, end, 0, 1, how, of)
        return
    if how == MIN or how == MAX or columns < 2 * wide:
        while begin + wide <= columns:
            fold(batch, group, first, end, begin, wide, how, of)
            begin += wide
    while begin < columns:
        fold(batch, group, first, end, begin, min(columns - begin, <int64_t> LONG), how, of)
        begin += LONG


cdef void by_group(int64_t begin, int64_t end, constant_t how, any_t* of) noexcept nogil:
    # The groups begin:end of all batch items in csr, or the rows begin:end in coo: there a group belongs to the part
    # that has its first row. One function for both, because what is done with a group takes the C++ compiler the most
    # time, and it would be compiled twice.
    cdef Task* task = <Task*> of
    cdef int64_t i = begin, batch, first, last, group, before, rows = task.rows
    cdef const int64_t* index
    while i < end:
        if task.pointers:
            batch, group = i // task.groups, i % task.groups
            index = task.index + batch * task.step
            first, last = index[group], index[group + 1]
            i += 1
            if first < 0 or last < first or last > rows:
                task.wrong.store(batch * task.step + group + (first >= 0 and first <= rows))
                continue
            if how == REPEAT or how == SHARE:
                if group == 0:
                    without_group(batch, 0, first, of)
                if group == task.groups - 1:
                    without_group(batch, last, rows, of)
            elif first == last:
                without_rows(batch, group, group + 1, how, of)
        else:
            batch, first = i // rows, i % rows
            index = task.index + batch * task.step
            group = index[first]
            before = index[first - 1] if first > 0 else -1
            if first > 0 and before == group:
                i += 1
                continue
            last = first + 1
            while last < rows and index[last] == group:
                last += 1
            i += last - first
            if group < 0 or group >= task.groups or group < before:
                task.wrong.store(batch * task.step + first)
                continue
            if how != REPEAT and how != SHARE:
                without_rows(batch, max(before + 1, <int64_t> 0), group, how, of)
                if last == rows:
                    without_rows(batch, group + 1, task.groups, how, of)
        if first < last:
            group_of_rows(batch, group, first, last, how, of)


cdef inline cbool is_wrong(int64_t group, int64_t place, Task* task) noexcept nogil:
    # Whether a row is in no group. If it must be in one, that is wrong.
    if 0 <= group < task.groups:
        return False
    if group != task.groups or not task.may_miss:
        task.wrong.store(place)
    return True


cdef inline void put(
    int64_t place, int64_t source, int64_t row, cbool sums, constant_t how, any_t* of
) noexcept nogil:
    # Row `row` into a group, in one column. `sums` are of opmath_t: one of bfloat16 would stop at 256 ones.
    cdef Task* task = <Task*> of
    cdef opmath_t value = <opmath_t> (<const scalar_t*> task.source)[source], old
    cdef scalar_t* result
    if sums:
        (<opmath_t*> task.result)[place] += value
        return
    result = <scalar_t*> task.result + place
    old = <opmath_t> result[0]
    if how % SCATTER_WAYS == ADD:
        result[0] = <scalar_t> (old + value)
    elif how % SCATTER_WAYS == MULTIPLY:
        result[0] = <scalar_t> (old * value)
    elif how % SCATTER_WAYS == LEAST:
        # The first of equal ones; also where it is the largest number of all, which the group begins with.
        if value < old or (value == old and task.places[place] == task.rows):
            result[0] = <scalar_t> value
            task.places[place] = row
    elif value > old or (value == old and task.places[place] == task.rows):
        result[0] = <scalar_t> value
        task.places[place] = row


cdef void into_groups(int64_t begin, int64_t end, constant_t how, any_t* of) noexcept nogil:
    # The columns begin:end of all batch items: then no two threads write to the same number.
    cdef Task* task = <Task*> of
    cdef int64_t rows = task.rows, groups = task.groups, columns = task.columns
    cdef int64_t batch, left, right, i, j, k, group
    cdef const int64_t* index
    cdef scalar_t* result = <scalar_t*> task.result
    cdef scalar_t start = 0
    # What extremes put back is one row, and no sum: it has the type of the rows.
    cdef cbool sums = how % SCATTER_WAYS == ADD and (not task.may_miss or sizeof(opmath_t) == sizeof(scalar_t))
    if how % SCATTER_WAYS == MULTIPLY:
        start = 1
    elif how % SCATTER_WAYS == LEAST:
        start = numeric_limits[scalar_t].upper_bound()
    elif how % SCATTER_WAYS == MOST:
        start = numeric_limits[scalar_t].lower_bound()
    while begin < end:
        batch, left = begin // columns, begin % columns
        right = min(columns, left + end - begin)
        begin += right - left
        for i in range(batch * groups, (batch + 1) * groups):
            for k in range(i * columns + left, i * columns + right):
                if sums:
                    (<opmath_t*> task.result)[k] = 0
                else:
                    result[k] = start
                if how % SCATTER_WAYS == LEAST or how % SCATTER_WAYS == MOST:
                    task.places[k] = rows
        index = task.index + batch * task.step
        for i in range(rows):
            j = (batch * rows + i) * columns
            if how < EACH_COLUMN:
                group = index[i]
                if is_wrong(group, batch * task.step + i, task):
                    continue
                group = (batch * groups + group) * columns
                for k in range(left, right):
                    put(group + k, j + k, i, sums, how, of)
            else:
                for k in range(left, right):
                    group = index[i * columns + k]
                    if not is_wrong(group, batch * task.step + i * columns + k, task):
                        put((batch * groups + group) * columns + k, j + k, i, sums, how, of)
        if how % SCATTER_WAYS == LEAST or how % SCATTER_WAYS == MOST:
            for i in range(batch * groups, (batch + 1) * groups):
                for k in range(i * columns + left, i * columns + right):
                    if task.places[k] == rows:
                        result[k] = 0


cdef void out_of_groups(int64_t begin, int64_t end, constant_t how, any_t* of) noexcept nogil:
    # The rows begin:end of all batch items.
    cdef Task* task = <Task*> of
    cdef int64_t columns = task.columns, batch, row, i, k, group
    cdef const int64_t* index
    cdef const scalar_t* source
    cdef scalar_t* result
    for i in range(begin, end):
        batch, row = i // task.rows, i % task.rows
        index = task.index + batch * task.step
        source = <const scalar_t*> task.source + batch * task.groups * columns
        result = <scalar_t*> task.result + i * columns
        if how < EACH_COLUMN:
            group = index[row]
            if is_wrong(group, batch * task.step + row, task):
                without_group(batch, row, row + 1, of)
                continue
            source += group * columns
            for k in range(columns):
                result[k] = source[k]
        else:
            for k in range(columns):
                group = index[row * columns + k]
                if is_wrong(group, batch * task.step + row * columns + k, task):
                    result[k] = 0
                else:
                    result[k] = source[group * columns + k]


cdef void run_scatter(int64_t begin, int64_t end, constant_t how, any_t* of) noexcept nogil:
    if how % SCATTER_WAYS == TAKE:
        out_of_groups(begin, end, how, of)
    else:
        into_groups(begin, end, how, of)


# Sizes and indices, for the CPU.

cdef Task task_for(
    const at.Tensor& source, const at.Tensor& result, const at.Tensor& index, int64_t dim, int64_t rows, int64_t groups
) except * nogil:
    cdef Task task
    cdef int64_t i
    task.source, task.result = source.const_data_ptr(), result.mutable_data_ptr()
    task.places = NULL
    task.index, task.step = index.const_data_ptr[int64_t](), 0
    task.pointers, task.may_miss = False, False
    task.batch, task.columns, task.rows, task.groups = 1, 1, rows, groups
    for i in range(source.dim()):
        if i < dim:
            task.batch *= source.size(i)
        elif i > dim:
            task.columns *= source.size(i)
    return task


cdef void check_index_tensor(const at.Tensor& index) except * nogil:
    check_type(index.scalar_type() == at.kLong, b"the index must be of int64, got ", index.scalar_type())
    check_type(index.is_cpu(), b"the index must be on the CPU, as the values are; copy it with .cpu()")


cdef at.Tensor for_batch(const at.Tensor& index, const at.Tensor& x) except * nogil:
    # An index over the last of its dimensions, the others being those of x: of one batch item, if all have the same.
    cdef vector[int64_t] sizes = index.sizes().vec()
    cdef int64_t i
    check_index_tensor(index)
    check_value(
        1 <= index.dim() <= x.dim(), b"the index must have from 1 to ", x.dim(),
        b" dimensions, those of the values, got ", index.dim())
    if index.numel() == index.size(-1):
        return index.contiguous()
    for i in range(index.dim() - 1):
        sizes[i] = x.size(i)
    return index.expand(sizes).contiguous()


cdef vector[int64_t] with_size(const at.Tensor& x, int64_t dim, int64_t size) except * nogil:
    cdef vector[int64_t] sizes = x.sizes().vec()
    sizes[dim] = size
    return sizes


cdef void check_right(const Task& task, int64_t most) except * nogil:
    cdef int64_t place = task.wrong.load()
    if place >= 0:
        check_index(
            False, b"the index must be from 0 to ", most, b" and, in csr and coo, in ascending order; got ",
            task.index[place], b" as its number ", place)


cdef tuple2[at.Tensor, at.Tensor] segments(
    int64_t how, cbool pointers, const at.Tensor& given, const at.Tensor& given_index, int64_t size
) except * nogil:
    # csr if `pointers`, else coo. Makes `size` groups of rows, or for REPEAT and SHARE rows of groups.
    cdef at.Tensor x = given.contiguous(), index = for_batch(given_index, given), places, result
    cdef int64_t dim = given_index.dim() - 1, rows, groups
    cdef atomic[int64_t] wrong
    cdef Task task
    result = at.empty(with_size(x, dim, size), x.options())
    rows, groups = x.size(dim), size
    if how == REPEAT or how == SHARE:
        rows, groups = groups, rows
    task = task_for(x, result, index, dim, rows, groups)
    task.step = index.size(-1) if index.numel() > index.size(-1) else 0
    if pointers:
        check_value(
            index.size(-1) == groups + 1 or (index.size(-1) == 0 and groups == 0),
            b"there must be a pointer more than there are groups, ", groups, b", got ", index.size(-1))
    else:
        check_value(
            index.size(-1) == rows, b"the index must have a number for each of ", rows, b" rows, got ", index.size(-1))
    if how == MIN or how == MAX:
        places = at.empty(result.sizes(), at.kLong)
        task.places = places.mutable_data_ptr[int64_t]()
    if rows == 0 or groups == 0 or task.batch * task.columns == 0:
        if places.defined():
            places.fill_(rows)
        return make_tuple(result.fill_(0), places)
    wrong.store(-1)
    task.wrong = &wrong
    task.pointers = pointers
    at.parallel_for(
        0, task.batch * (groups if pointers else rows),
        1 + GRAIN // (1 + task.columns * (1 + rows // groups if pointers else 1)),
        instantiate_part_with(
            how, SEGMENT_WAYS, x.scalar_type(), b"segment_csr" if pointers else b"segment_coo", by_group, AT_ALL_TYPES,
            at.kHalf, at.kBFloat16),
        &task)
    check_right(task, rows if pointers else groups - 1)
    return make_tuple(result, places)


cdef int64_t positive(int64_t dim, const at.Tensor& x) except * nogil:
    check_index(-x.dim() <= dim < x.dim(), b"dim must be from ", -x.dim(), b" to ", x.dim() - 1, b", got ", dim)
    return dim + x.dim() if dim < 0 else dim


cdef at.Tensor aligned(const at.Tensor& index, const at.Tensor& x, int64_t dim) except * nogil:
    # The index with as many dimensions as x. One of a single dimension is along `dim`; others begin as x does.
    cdef at.Tensor result = index
    cdef int64_t _i
    if index.dim() == 1:
        for _i in range(dim):
            result = result.unsqueeze(0)
    for _i in range(result.dim(), x.dim()):
        result = result.unsqueeze(-1)
    return result


cdef tuple2[at.Tensor, at.Tensor] scattered(
    int64_t how, const at.Tensor& given, const at.Tensor& given_index, int64_t given_dim, int64_t size, cbool may_miss
) except * nogil:
    # Makes `size` groups of rows, or for TAKE rows of groups.
    cdef at.Tensor x = given.contiguous(), index, places, result
    cdef int64_t dim = positive(given_dim, given), rows, groups, items = 1, each = 1, grain, i
    cdef vector[int64_t] sizes
    cdef atomic[int64_t] wrong
    cdef Task task
    check_index_tensor(given_index)
    index = aligned(given_index, x, dim)
    check_value(
        index.dim() == x.dim(), b"the index must have no more than ", x.dim(), b" dimensions, got ", index.dim())
    rows, groups = index.size(dim) if how == TAKE else x.size(dim), x.size(dim) if how == TAKE else size
    result = at.empty(
        with_size(x, dim, rows if how == TAKE else groups),
        x.options().dtype(at.toOpMathType(x.scalar_type())) if how == ADD and not may_miss else x.options())
    task = task_for(x, result, given_index, dim, rows, groups)
    if how == LEAST or how == MOST:
        places = at.empty(result.sizes(), at.kLong)
        task.places = places.mutable_data_ptr[int64_t]()
    if rows == 0 or groups == 0 or task.batch * task.columns == 0:
        # There is nothing to multiply either, and torch_scatter's product of nothing is 0 if all is empty, else 1.
        if places.defined():
            places.fill_(rows)
        return make_tuple(result.fill_(0).to(x.scalar_type()), places)
    # The index of one batch item and column, if all have the same.
    sizes = with_size(x, dim, rows)
    for i in range(x.dim()):
        if i < dim:
            items *= index.size(i)
        elif i > dim:
            each *= index.size(i)
    task.step = rows if items > 1 else 0
    if each > 1:
        how += EACH_COLUMN
        task.step *= task.columns
    for i in range(x.dim()):
        if (i < dim and items == 1) or (i > dim and how < EACH_COLUMN):
            sizes[i] = 1
    index = index.expand(sizes).contiguous()
    task.index = index.const_data_ptr[int64_t]()
    task.may_miss = may_miss
    wrong.store(-1)
    task.wrong = &wrong
    if how % SCATTER_WAYS == TAKE:
        grain = 1 + GRAIN // (1 + task.columns)
    else:
        grain = max(1 + GRAIN // (1 + rows), SHARED // result.element_size())
    at.parallel_for(
        0, task.batch * (rows if how % SCATTER_WAYS == TAKE else task.columns),
        grain,
        instantiate_part_with(
            how, ALL_SCATTER_WAYS, x.scalar_type(), b"scatter", run_scatter, AT_ALL_TYPES, at.kHalf, at.kBFloat16),
        &task)
    check_right(task, groups - 1)
    return make_tuple(result.to(x.scalar_type()), places)


cdef int64_t groups_of(const at.Tensor& index, const optional[int64_t]& size, cbool is_sorted) except * nogil:
    cdef at.Tensor last
    # How many groups there are, if the caller does not say: one more than the largest index.
    if size.has_value():
        check_value(size.value() >= 0, b"dim_size must not be negative, got ", size.value())
        return size.value()
    if index.numel() == 0:
        return 0
    check_index_tensor(index)
    last = index
    if is_sorted:
        last = index.select(-1, -1)
    return 1 + at.max(last).item[int64_t]()


# What Meta kernels and gradients share.

cdef at.Tensor resized(const at.Tensor& x, int64_t dim, const at.SymInt& size) except * nogil:
    cdef vector[at.SymInt] sizes = x.sym_sizes().vec()
    sizes[dim] = size
    return at.empty_symint(sizes, x.options())


cdef (at.Tensor, at.Tensor) with_places(const at.Tensor& x) except * nogil:
    return x, at.empty_like(x, x.options().dtype(at.kLong))


cdef at.SymInt known(const optional[at.SymInt]& size) except * nogil:
    check_value(
        size.has_value(),
        b"the size of the result must be given to torch.compile, torch.export and meta tensors, because without it the "
        b"size is a value of the index")
    return size.value()


cdef optional[at.SymInt] given(const at.SymInt& size) except * nogil:
    return optional[at.SymInt](size)


# Putting what groups have into some of their rows, and taking it from there: what extremes are made of.

cdef at.Tensor put_back(const at.Tensor& x, const at.Tensor& places, int64_t dim, int64_t rows) except * nogil:
    return get0(scattered(ADD, x, places, dim, rows, True))


cdef at.Tensor put_back_meta(
    const at.Tensor& x, const at.Tensor& places, int64_t dim, const at.SymInt& rows
) except * nogil:
    return resized(x, dim, rows)


cdef void put_back_setup(
    Context& ctx, const at.Tensor& x, const at.Tensor& places, int64_t dim, const at.SymInt& rows,
    const at.Tensor& result,
) except * nogil:
    ctx.save_for_backward(places)
    ctx.state[int64_t]()[0] = dim


cdef (at.Tensor, at.Tensor, at.Tensor, at.Tensor) put_back_backward(
    Context& ctx, const at.Tensor& grad
) except * nogil:
    cdef Operator[at.Tensor] pick = Operator[at.Tensor](b"ports_scatter::_pick")
    return pick.call(grad, ctx.saved_tensor(0), ctx.state[int64_t]()[0]), at.Tensor(), at.Tensor(), at.Tensor()


cdef at.Tensor pick(const at.Tensor& x, const at.Tensor& places, int64_t dim) except * nogil:
    return get0(scattered(TAKE, x, places, dim, 0, True))


cdef at.Tensor pick_meta(const at.Tensor& x, const at.Tensor& places, int64_t dim) except * nogil:
    return resized(x, dim, places.sym_size(dim))


cdef void pick_setup(
    Context& ctx, const at.Tensor& x, const at.Tensor& places, int64_t dim, const at.Tensor& result
) except * nogil:
    ctx.save_for_backward(places)
    ctx.state[vector[at.SymInt]]()[0].push_back(at.SymInt(dim))
    ctx.state[vector[at.SymInt]]()[0].push_back(x.sym_size(dim))


cdef (at.Tensor, at.Tensor, at.Tensor) pick_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef Operator[at.Tensor] put = Operator[at.Tensor](b"ports_scatter::_put_back")
    cdef vector[at.SymInt]* kept = ctx.state[vector[at.SymInt]]()
    return put.call(grad, ctx.saved_tensor(0), kept[0][0].expect_int(), kept[0][1]), at.Tensor(), at.Tensor()


define("ports_scatter::_put_back", "(Tensor x, Tensor places, int dim, SymInt rows) -> Tensor", Tag.pt2_compliant_tag)
impl("ports_scatter::_put_back", "CPU", put_back)
impl("ports_scatter::_put_back", "Meta", put_back_meta)
register_autograd("ports_scatter::_put_back", put_back_backward, put_back_setup)
define("ports_scatter::_pick", "(Tensor x, Tensor places, int dim) -> Tensor", Tag.pt2_compliant_tag)
impl("ports_scatter::_pick", "CPU", pick)
impl("ports_scatter::_pick", "Meta", pick_meta)
register_autograd("ports_scatter::_pick", pick_backward, pick_setup)


# csr

cdef int64_t groups_between(const at.Tensor& indptr) except * nogil:
    check_value(
        indptr.dim() > 0 and indptr.size(-1) > 0, b"indptr must have a pointer more than there are groups, got sizes ",
        indptr.sizes())
    return indptr.size(-1) - 1


cdef at.Tensor segment_sum_csr(const at.Tensor& src, const at.Tensor& indptr) except * nogil:
    return get0(segments(SUM, True, src, indptr, groups_between(indptr)))


cdef at.Tensor segment_mean_csr(const at.Tensor& src, const at.Tensor& indptr) except * nogil:
    return get0(segments(MEAN, True, src, indptr, groups_between(indptr)))


cdef tuple2[at.Tensor, at.Tensor] segment_min_csr(const at.Tensor& src, const at.Tensor& indptr) except * nogil:
    return segments(MIN, True, src, indptr, groups_between(indptr))


cdef tuple2[at.Tensor, at.Tensor] segment_max_csr(const at.Tensor& src, const at.Tensor& indptr) except * nogil:
    return segments(MAX, True, src, indptr, groups_between(indptr))


cdef at.Tensor segment_csr_meta(const at.Tensor& src, const at.Tensor& indptr) except * nogil:
    return resized(src, indptr.dim() - 1, indptr.sym_size(-1) - 1)


cdef (at.Tensor, at.Tensor) extreme_csr_meta(const at.Tensor& src, const at.Tensor& indptr) except * nogil:
    return with_places(segment_csr_meta(src, indptr))


cdef void segment_csr_setup(
    Context& ctx, const at.Tensor& src, const at.Tensor& indptr, const at.Tensor& result
) except * nogil:
    ctx.save_for_backward(indptr)
    ctx.state[at.SymInt]()[0] = src.sym_size(indptr.dim() - 1)


cdef (at.Tensor, at.Tensor) segment_sum_csr_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef Operator[at.Tensor] gather = Operator[at.Tensor](b"ports_scatter::gather_csr")
    return gather.call(grad, ctx.saved_tensor(0), given(ctx.state[at.SymInt]()[0])), at.Tensor()


cdef (at.Tensor, at.Tensor) segment_mean_csr_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef Operator[at.Tensor] share = Operator[at.Tensor](b"ports_scatter::_share_csr")
    return share.call(grad, ctx.saved_tensor(0), ctx.state[at.SymInt]()[0]), at.Tensor()


cdef void extreme_csr_setup(
    Context& ctx, const at.Tensor& src, const at.Tensor& indptr, const at.Tensor& result, const at.Tensor& places
) except * nogil:
    ctx.save_for_backward(indptr, places)
    ctx.state[at.SymInt]()[0] = src.sym_size(indptr.dim() - 1)


cdef at.Tensor extreme_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef Operator[at.Tensor] put = Operator[at.Tensor](b"ports_scatter::_put_back")
    return put.call(grad, ctx.saved_tensor(1), ctx.saved_tensor(0).dim() - 1, ctx.state[at.SymInt]()[0])


cdef (at.Tensor, at.Tensor) extreme_csr_backward(
    Context& ctx, const at.Tensor& grad, const at.Tensor& of_places
) except * nogil:
    return extreme_backward(ctx, grad), at.Tensor()


cdef at.Tensor gather_csr(
    const at.Tensor& src, const at.Tensor& indptr, const optional[int64_t]& size
) except * nogil:
    cdef int64_t rows = 0
    groups_between(indptr)
    if size.has_value():
        rows = size.value()
    elif indptr.numel() > 0 and src.numel() > 0:
        check_index_tensor(indptr)
        rows = indptr.flatten().select(0, -1).item[int64_t]()
        check_index(rows >= 0, b"the last pointer must not be negative, got ", rows)
    return get0(segments(REPEAT, True, src, indptr, rows))


cdef at.Tensor gather_csr_meta(
    const at.Tensor& src, const at.Tensor& indptr, const optional[at.SymInt]& size
) except * nogil:
    return resized(src, indptr.dim() - 1, known(size))


cdef void gather_csr_setup(
    Context& ctx, const at.Tensor& src, const at.Tensor& indptr, const optional[at.SymInt]& size,
    const at.Tensor& result,
) except * nogil:
    ctx.save_for_backward(indptr)


cdef (at.Tensor, at.Tensor, at.Tensor) gather_csr_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef Operator[at.Tensor] add = Operator[at.Tensor](b"ports_scatter::segment_sum_csr")
    return add.call(grad, ctx.saved_tensor(0)), at.Tensor(), at.Tensor()


cdef at.Tensor share_csr(const at.Tensor& src, const at.Tensor& indptr, int64_t size) except * nogil:
    return get0(segments(SHARE, True, src, indptr, size))


cdef at.Tensor share_csr_meta(const at.Tensor& src, const at.Tensor& indptr, const at.SymInt& size) except * nogil:
    return resized(src, indptr.dim() - 1, size)


cdef void share_csr_setup(
    Context& ctx, const at.Tensor& src, const at.Tensor& indptr, const at.SymInt& size, const at.Tensor& result
) except * nogil:
    ctx.save_for_backward(indptr)


cdef (at.Tensor, at.Tensor, at.Tensor) share_csr_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef Operator[at.Tensor] mean = Operator[at.Tensor](b"ports_scatter::segment_mean_csr")
    return mean.call(grad, ctx.saved_tensor(0)), at.Tensor(), at.Tensor()


define("ports_scatter::segment_sum_csr", "(Tensor src, Tensor indptr) -> Tensor", Tag.pt2_compliant_tag)
impl("ports_scatter::segment_sum_csr", "CPU", segment_sum_csr)
impl("ports_scatter::segment_sum_csr", "Meta", segment_csr_meta)
register_autograd("ports_scatter::segment_sum_csr", segment_sum_csr_backward, segment_csr_setup)
define("ports_scatter::segment_mean_csr", "(Tensor src, Tensor indptr) -> Tensor", Tag.pt2_compliant_tag)
impl("ports_scatter::segment_mean_csr", "CPU", segment_mean_csr)
impl("ports_scatter::segment_mean_csr", "Meta", segment_csr_meta)
register_autograd("ports_scatter::segment_mean_csr", segment_mean_csr_backward, segment_csr_setup)
define("ports_scatter::segment_min_csr", "(Tensor src, Tensor indptr) -> (Tensor, Tensor)", Tag.pt2_compliant_tag)
impl("ports_scatter::segment_min_csr", "CPU", segment_min_csr)
impl("ports_scatter::segment_min_csr", "Meta", extreme_csr_meta)
register_autograd("ports_scatter::segment_min_csr", extreme_csr_backward, extreme_csr_setup)
define("ports_scatter::segment_max_csr", "(Tensor src, Tensor indptr) -> (Tensor, Tensor)", Tag.pt2_compliant_tag)
impl("ports_scatter::segment_max_csr", "CPU", segment_max_csr)
impl("ports_scatter::segment_max_csr", "Meta", extreme_csr_meta)
register_autograd("ports_scatter::segment_max_csr", extreme_csr_backward, extreme_csr_setup)
define("ports_scatter::gather_csr", "(Tensor src, Tensor indptr, SymInt? size=None) -> Tensor", Tag.pt2_compliant_tag)
impl("ports_scatter::gather_csr", "CPU", gather_csr)
impl("ports_scatter::gather_csr", "Meta", gather_csr_meta)
register_autograd("ports_scatter::gather_csr", gather_csr_backward, gather_csr_setup)
define("ports_scatter::_share_csr", "(Tensor src, Tensor indptr, SymInt size) -> Tensor", Tag.pt2_compliant_tag)
impl("ports_scatter::_share_csr", "CPU", share_csr)
impl("ports_scatter::_share_csr", "Meta", share_csr_meta)
register_autograd("ports_scatter::_share_csr", share_csr_backward, share_csr_setup)


# coo

cdef at.Tensor segment_sum_coo(
    const at.Tensor& src, const at.Tensor& index, const optional[int64_t]& dim_size
) except * nogil:
    return get0(segments(SUM, False, src, index, groups_of(index, dim_size, True)))


cdef at.Tensor segment_mean_coo(
    const at.Tensor& src, const at.Tensor& index, const optional[int64_t]& dim_size
) except * nogil:
    return get0(segments(MEAN, False, src, index, groups_of(index, dim_size, True)))


cdef tuple2[at.Tensor, at.Tensor] segment_min_coo(
    const at.Tensor& src, const at.Tensor& index, const optional[int64_t]& dim_size
) except * nogil:
    return segments(MIN, False, src, index, groups_of(index, dim_size, True))


cdef tuple2[at.Tensor, at.Tensor] segment_max_coo(
    const at.Tensor& src, const at.Tensor& index, const optional[int64_t]& dim_size
) except * nogil:
    return segments(MAX, False, src, index, groups_of(index, dim_size, True))


cdef at.Tensor segment_coo_meta(
    const at.Tensor& src, const at.Tensor& index, const optional[at.SymInt]& dim_size
) except * nogil:
    return resized(src, index.dim() - 1, known(dim_size))


cdef (at.Tensor, at.Tensor) extreme_coo_meta(
    const at.Tensor& src, const at.Tensor& index, const optional[at.SymInt]& dim_size
) except * nogil:
    return with_places(segment_coo_meta(src, index, dim_size))


cdef void segment_coo_setup(
    Context& ctx, const at.Tensor& src, const at.Tensor& index, const optional[at.SymInt]& dim_size,
    const at.Tensor& result,
) except * nogil:
    ctx.save_for_backward(index)


cdef (at.Tensor, at.Tensor, at.Tensor) segment_sum_coo_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef Operator[at.Tensor] gather = Operator[at.Tensor](b"ports_scatter::gather_coo")
    return gather.call(grad, ctx.saved_tensor(0)), at.Tensor(), at.Tensor()


cdef (at.Tensor, at.Tensor, at.Tensor) segment_mean_coo_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef Operator[at.Tensor] share = Operator[at.Tensor](b"ports_scatter::_share_coo")
    return share.call(grad, ctx.saved_tensor(0)), at.Tensor(), at.Tensor()


cdef void extreme_coo_setup(
    Context& ctx, const at.Tensor& src, const at.Tensor& index, const optional[at.SymInt]& dim_size,
    const at.Tensor& result, const at.Tensor& places,
) except * nogil:
    extreme_csr_setup(ctx, src, index, result, places)


cdef (at.Tensor, at.Tensor, at.Tensor) extreme_coo_backward(
    Context& ctx, const at.Tensor& grad, const at.Tensor& of_places
) except * nogil:
    return extreme_backward(ctx, grad), at.Tensor(), at.Tensor()


cdef at.Tensor gather_coo(const at.Tensor& src, const at.Tensor& index) except * nogil:
    check_value(index.dim() > 0, b"the index must have a dimension at least")
    return get0(segments(REPEAT, False, src, index, index.size(-1)))


cdef at.Tensor share_coo(const at.Tensor& src, const at.Tensor& index) except * nogil:
    return get0(segments(SHARE, False, src, index, index.size(-1)))


cdef at.Tensor gather_coo_meta(const at.Tensor& src, const at.Tensor& index) except * nogil:
    return resized(src, index.dim() - 1, index.sym_size(-1))


cdef void gather_coo_setup(
    Context& ctx, const at.Tensor& src, const at.Tensor& index, const at.Tensor& result
) except * nogil:
    segment_csr_setup(ctx, src, index, result)


cdef (at.Tensor, at.Tensor) gather_coo_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef Operator[at.Tensor] add = Operator[at.Tensor](b"ports_scatter::segment_sum_coo")
    return add.call(grad, ctx.saved_tensor(0), given(ctx.state[at.SymInt]()[0])), at.Tensor()


cdef (at.Tensor, at.Tensor) share_coo_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef Operator[at.Tensor] mean = Operator[at.Tensor](b"ports_scatter::segment_mean_coo")
    return mean.call(grad, ctx.saved_tensor(0), given(ctx.state[at.SymInt]()[0])), at.Tensor()


define(
    "ports_scatter::segment_sum_coo", "(Tensor src, Tensor index, SymInt? dim_size=None) -> Tensor",
    Tag.pt2_compliant_tag)
impl("ports_scatter::segment_sum_coo", "CPU", segment_sum_coo)
impl("ports_scatter::segment_sum_coo", "Meta", segment_coo_meta)
register_autograd("ports_scatter::segment_sum_coo", segment_sum_coo_backward, segment_coo_setup)
define(
    "ports_scatter::segment_mean_coo", "(Tensor src, Tensor index, SymInt? dim_size=None) -> Tensor",
    Tag.pt2_compliant_tag)
impl("ports_scatter::segment_mean_coo", "CPU", segment_mean_coo)
impl("ports_scatter::segment_mean_coo", "Meta", segment_coo_meta)
register_autograd("ports_scatter::segment_mean_coo", segment_mean_coo_backward, segment_coo_setup)
define(
    "ports_scatter::segment_min_coo", "(Tensor src, Tensor index, SymInt? dim_size=None) -> (Tensor, Tensor)",
    Tag.pt2_compliant_tag)
impl("ports_scatter::segment_min_coo", "CPU", segment_min_coo)
impl("ports_scatter::segment_min_coo", "Meta", extreme_coo_meta)
register_autograd("ports_scatter::segment_min_coo", extreme_coo_backward, extreme_coo_setup)
define(
    "ports_scatter::segment_max_coo", "(Tensor src, Tensor index, SymInt? dim_size=None) -> (Tensor, Tensor)",
    Tag.pt2_compliant_tag)
impl("ports_scatter::segment_max_coo", "CPU", segment_max_coo)
impl("ports_scatter::segment_max_coo", "Meta", extreme_coo_meta)
register_autograd("ports_scatter::segment_max_coo", extreme_coo_backward, extreme_coo_setup)
define("ports_scatter::gather_coo", "(Tensor src, Tensor index) -> Tensor", Tag.pt2_compliant_tag)
impl("ports_scatter::gather_coo", "CPU", gather_coo)
impl("ports_scatter::gather_coo", "Meta", gather_coo_meta)
register_autograd("ports_scatter::gather_coo", gather_coo_backward, gather_coo_setup)
define("ports_scatter::_share_coo", "(Tensor src, Tensor index) -> Tensor", Tag.pt2_compliant_tag)
impl("ports_scatter::_share_coo", "CPU", share_coo)
impl("ports_scatter::_share_coo", "Meta", gather_coo_meta)
register_autograd("ports_scatter::_share_coo", share_coo_backward, gather_coo_setup)


# scatter

cdef at.Tensor scatter_sum(
    const at.Tensor& src, const at.Tensor& index, int64_t dim, const optional[int64_t]& dim_size
) except * nogil:
    return get0(scattered(ADD, src, index, dim, groups_of(index, dim_size, False), False))


cdef at.Tensor scatter_mul(
    const at.Tensor& src, const at.Tensor& index, int64_t dim, const optional[int64_t]& dim_size
) except * nogil:
    return get0(scattered(MULTIPLY, src, index, dim, groups_of(index, dim_size, False), False))


cdef tuple2[at.Tensor, at.Tensor] scatter_min(
    const at.Tensor& src, const at.Tensor& index, int64_t dim, const optional[int64_t]& dim_size
) except * nogil:
    return scattered(LEAST, src, index, dim, groups_of(index, dim_size, False), False)


cdef tuple2[at.Tensor, at.Tensor] scatter_max(
    const at.Tensor& src, const at.Tensor& index, int64_t dim, const optional[int64_t]& dim_size
) except * nogil:
    return scattered(MOST, src, index, dim, groups_of(index, dim_size, False), False)


cdef at.Tensor scatter_meta(
    const at.Tensor& src, const at.Tensor& index, int64_t dim, const optional[at.SymInt]& dim_size
) except * nogil:
    return resized(src, positive(dim, src), known(dim_size))


cdef (at.Tensor, at.Tensor) scatter_extreme_meta(
    const at.Tensor& src, const at.Tensor& index, int64_t dim, const optional[at.SymInt]& dim_size
) except * nogil:
    return with_places(scatter_meta(src, index, dim, dim_size))


cdef void scatter_setup(
    Context& ctx, const at.Tensor& src, const at.Tensor& index, int64_t dim, const optional[at.SymInt]& dim_size,
    const at.Tensor& result,
) except * nogil:
    ctx.save_for_backward(index)
    ctx.state[int64_t]()[0] = dim


cdef (at.Tensor, at.Tensor, at.Tensor, at.Tensor) scatter_sum_backward(
    Context& ctx, const at.Tensor& grad
) except * nogil:
    cdef Operator[at.Tensor] take = Operator[at.Tensor](b"ports_scatter::_take")
    return take.call(grad, ctx.saved_tensor(0), ctx.state[int64_t]()[0]), at.Tensor(), at.Tensor(), at.Tensor()


cdef void scatter_mul_setup(
    Context& ctx, const at.Tensor& src, const at.Tensor& index, int64_t dim, const optional[at.SymInt]& dim_size,
    const at.Tensor& result,
) except * nogil:
    ctx.save_for_backward(index, src, result)
    ctx.state[int64_t]()[0] = dim


cdef (at.Tensor, at.Tensor, at.Tensor, at.Tensor) scatter_mul_backward(
    Context& ctx, const at.Tensor& grad
) except * nogil:
    # As in the original, a factor of 0 has the gradient 0 if the product is 0 too, whatever the other factors are.
    cdef Operator[at.Tensor] take = Operator[at.Tensor](b"ports_scatter::_take")
    cdef at.Tensor result = take.call(
        at.mul(grad, ctx.saved_tensor(2)), ctx.saved_tensor(0), ctx.state[int64_t]()[0])
    result = at.div(result, ctx.saved_tensor(1))
    return at.masked_fill(result, at.isnan(result), 0), at.Tensor(), at.Tensor(), at.Tensor()


cdef void scatter_extreme_setup(
    Context& ctx, const at.Tensor& src, const at.Tensor& index, int64_t dim, const optional[at.SymInt]& dim_size,
    const at.Tensor& result, const at.Tensor& places,
) except * nogil:
    ctx.save_for_backward(places)
    ctx.state[vector[at.SymInt]]()[0].push_back(at.SymInt(positive(dim, src)))
    ctx.state[vector[at.SymInt]]()[0].push_back(src.sym_size(dim))


cdef (at.Tensor, at.Tensor, at.Tensor, at.Tensor) scatter_extreme_backward(
    Context& ctx, const at.Tensor& grad, const at.Tensor& of_places
) except * nogil:
    cdef Operator[at.Tensor] put = Operator[at.Tensor](b"ports_scatter::_put_back")
    cdef vector[at.SymInt]* kept = ctx.state[vector[at.SymInt]]()
    cdef at.Tensor result = put.call(grad, ctx.saved_tensor(0), kept[0][0].expect_int(), kept[0][1])
    return result, at.Tensor(), at.Tensor(), at.Tensor()


cdef at.Tensor take(const at.Tensor& src, const at.Tensor& index, int64_t dim) except * nogil:
    return get0(scattered(TAKE, src, index, dim, 0, False))


cdef at.Tensor take_meta(const at.Tensor& src, const at.Tensor& index, int64_t dim) except * nogil:
    cdef int64_t along = positive(dim, src)
    return resized(src, along, aligned(index, src, along).sym_size(along))


cdef void take_setup(
    Context& ctx, const at.Tensor& src, const at.Tensor& index, int64_t dim, const at.Tensor& result
) except * nogil:
    pick_setup(ctx, src, index, positive(dim, src), result)


cdef (at.Tensor, at.Tensor, at.Tensor) take_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef Operator[at.Tensor] add = Operator[at.Tensor](b"ports_scatter::scatter_sum")
    cdef vector[at.SymInt]* kept = ctx.state[vector[at.SymInt]]()
    cdef at.Tensor result = add.call(grad, ctx.saved_tensor(0), kept[0][0].expect_int(), given(kept[0][1]))
    return result, at.Tensor(), at.Tensor()


cdef at.Tensor scatter_mean(
    const at.Tensor& src, const at.Tensor& index, int64_t dim, const optional[at.SymInt]& dim_size
) except * nogil:
    # Made of operators, so it has a gradient and symbolic sizes as they have.
    cdef Operator[at.Tensor] add = Operator[at.Tensor](b"ports_scatter::scatter_sum")
    cdef int64_t along = positive(dim, src)
    cdef at.Tensor total = add.call(src, index, along, dim_size), count
    count = add.call(
        at.ones_symint(index.sym_sizes(), src.options()), index, min(along, index.dim() - 1),
        given(total.sym_size(along)))
    count = aligned(at.clamp_min(count, 1), total, along)
    return at.div(total, count) if src.is_floating_point() else at.floor_divide(total, count)


define(
    "ports_scatter::scatter_sum", "(Tensor src, Tensor index, int dim=-1, SymInt? dim_size=None) -> Tensor",
    Tag.pt2_compliant_tag)
impl("ports_scatter::scatter_sum", "CPU", scatter_sum)
impl("ports_scatter::scatter_sum", "Meta", scatter_meta)
register_autograd("ports_scatter::scatter_sum", scatter_sum_backward, scatter_setup)
define(
    "ports_scatter::scatter_mul", "(Tensor src, Tensor index, int dim=-1, SymInt? dim_size=None) -> Tensor",
    Tag.pt2_compliant_tag)
impl("ports_scatter::scatter_mul", "CPU", scatter_mul)
impl("ports_scatter::scatter_mul", "Meta", scatter_meta)
register_autograd("ports_scatter::scatter_mul", scatter_mul_backward, scatter_mul_setup)
define(
    "ports_scatter::scatter_min", "(Tensor src, Tensor index, int dim=-1, SymInt? dim_size=None) -> (Tensor, Tensor)",
    Tag.pt2_compliant_tag)
impl("ports_scatter::scatter_min", "CPU", scatter_min)
impl("ports_scatter::scatter_min", "Meta", scatter_extreme_meta)
register_autograd("ports_scatter::scatter_min", scatter_extreme_backward, scatter_extreme_setup)
define(
    "ports_scatter::scatter_max", "(Tensor src, Tensor index, int dim=-1, SymInt? dim_size=None) -> (Tensor, Tensor)",
    Tag.pt2_compliant_tag)
impl("ports_scatter::scatter_max", "CPU", scatter_max)
impl("ports_scatter::scatter_max", "Meta", scatter_extreme_meta)
register_autograd("ports_scatter::scatter_max", scatter_extreme_backward, scatter_extreme_setup)
define("ports_scatter::_take", "(Tensor src, Tensor index, int dim) -> Tensor", Tag.pt2_compliant_tag)
impl("ports_scatter::_take", "CPU", take)
impl("ports_scatter::_take", "Meta", take_meta)
register_autograd("ports_scatter::_take", take_backward, take_setup)
define(
    "ports_scatter::scatter_mean", "(Tensor src, Tensor index, int dim=-1, SymInt? dim_size=None) -> Tensor",
    Tag.pt2_compliant_tag)
impl("ports_scatter::scatter_mean", "CompositeImplicitAutograd", scatter_mean)
