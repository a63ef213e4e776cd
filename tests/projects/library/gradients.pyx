# Differentiable functions, called directly.
cimport ATen as at
cimport torch
from interop cimport get0, get1, get2, get3, make_tuple, tuple2, tuple3, tuple4
from libc.stdint cimport int64_t
from libcpp.optional cimport nullopt, optional
from libcpp.vector cimport vector
from torch.autograd cimport AutoDispatchBelowAutograd, Context, Function
from torch.library cimport Operator, Tag, define, impl

asked = []  # what was requested from the backward functions below


# One input, one output that is kept.

cdef at.Tensor exp_forward(Context& ctx, const at.Tensor& x) except * nogil:
    cdef at.Tensor y = at.exp(x)
    ctx.save_for_backward(y)
    return y


cdef at.Tensor exp_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    return at.mul(grad, ctx.saved_tensor(0))


cdef Function[at.Tensor] exp_function
exp_function.define("Exp", exp_forward, exp_backward)


def exp(torch.Tensor x not None):
    cdef at.Tensor a = x.cdata, y
    with nogil:
        y = exp_function.apply(a)
    return torch.wrap(y)


# The input is kept.

cdef at.Tensor cube_forward(Context& ctx, const at.Tensor& x) noexcept nogil:
    ctx.save_for_backward(x)
    return at.mul(at.mul(x, x), x)


cdef at.Tensor cube_backward(Context& ctx, const at.Tensor& grad) noexcept nogil:
    cdef at.Tensor x = ctx.saved_tensor(0)
    return at.mul(at.mul(grad, 3), at.mul(x, x))


cdef Function[at.Tensor] cube_function
cube_function.define("Cube", cube_forward, cube_backward)


def cube(torch.Tensor x not None):
    return torch.wrap(cube_function.apply(x.cdata))


# Several inputs and outputs, numbers, a state, gradients only where they are wanted.

cdef struct Power:
    double p
    int64_t times


cdef (at.Tensor, at.Tensor) power_forward(
        Context& ctx, const at.Tensor& x, double p, const at.Tensor& y, int64_t times, bint flag) except * nogil:
    cdef Power* state = ctx.state[Power]()
    state.p = p
    state.times = times if flag else 0
    cdef optional[at.Tensor] other = optional[at.Tensor](y)
    ctx.save_for_backward(x, other.value())  # a reference to Cython, which is no at.Tensor in C++
    return at.mul(at.pow(x, p), y), at.mul(at.add(x, y), state.times)


cdef (at.Tensor, at.Tensor, at.Tensor, at.Tensor, at.Tensor) power_backward(
        Context& ctx, const at.Tensor& g, const at.Tensor& h) except * nogil:
    cdef Power* state = ctx.state[Power]()
    cdef at.Tensor x = ctx.saved_tensor(0), y = ctx.saved_tensor(1), dx, dy, none
    if ctx.needs_input_grad(0):
        dx = at.add(at.mul(at.mul(g, y), at.mul(at.pow(x, state.p - 1), state.p)), at.mul(h, state.times))
    if ctx.needs_input_grad(2):
        dy = at.add(at.mul(g, at.pow(x, state.p)), at.mul(h, state.times))
    with gil:
        asked.append(tuple([ctx.needs_input_grad(i) for i in range(5)]))
    return dx, none, dy, none, none


cdef Function[tuple2[at.Tensor, at.Tensor]] power_function
power_function.define("Power", power_forward, power_backward)


def power(torch.Tensor x not None, double p, torch.Tensor y not None, int64_t times, bint flag):
    cdef tuple2[at.Tensor, at.Tensor] both = power_function.apply(x.cdata, p, y.cdata, times, flag)
    return torch.wrap(get0(both)), torch.wrap(get1(both))


# Arguments that are references to Cython: their gradient must not be lost.

def product(list tensors):
    cdef vector[at.Tensor] all
    for tensor in tensors:
        all.push_back(torch.unpack(tensor))
    cdef optional[double] two = optional[double](2.0)
    cdef tuple2[at.Tensor, at.Tensor] both = power_function.apply(all.at(0), two.value(), all[1], 1, True)
    return torch.wrap(get0(both))


# Changes its input in place.

cdef at.Tensor double_forward(Context& ctx, at.Tensor& x) except * nogil:
    x.mul_(2)
    ctx.mark_dirty(x)
    return x


cdef at.Tensor double_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    return at.mul(grad, 2)


cdef Function[at.Tensor] double_function
double_function.define("Double", double_forward, double_backward)


def double_(torch.Tensor x not None):
    return torch.wrap(double_function.apply(x.cdata))


# Returns its input, and a view of it.

cdef at.Tensor same_forward(Context& ctx, const at.Tensor& x) except * nogil:
    return x


cdef at.Tensor row_forward(Context& ctx, const at.Tensor& x) except * nogil:
    ctx.save_for_backward(x)
    return x.select(0, 0)


cdef at.Tensor same_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    return at.mul(grad, 3)


cdef at.Tensor row_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef at.Tensor whole = at.zeros_like(ctx.saved_tensor(0))
    whole.select(0, 0).copy_(grad)
    return whole


cdef Function[at.Tensor] same_function, row_function
same_function.define("Same", same_forward, same_backward)
row_function.define("Row", row_forward, row_backward)


def same(torch.Tensor x not None):
    return torch.wrap(same_function.apply(x.cdata))


def row(torch.Tensor x not None):
    return torch.wrap(row_function.apply(x.cdata))


# Outputs without a gradient: one that is marked, one of whole numbers, one that is undefined.

cdef (at.Tensor, at.Tensor, at.Tensor, at.Tensor) parts_forward(
        Context& ctx, const at.Tensor& x, bint materialize) except * nogil:
    cdef at.Tensor sign = at.sign(x), undefined
    ctx.mark_non_differentiable(sign)
    ctx.set_materialize_grads(materialize)
    return at.mul(x, 2), sign, at.argmax(x), undefined


cdef (at.Tensor, at.Tensor) parts_backward(
        Context& ctx, const at.Tensor& a, const at.Tensor& b, const at.Tensor& c, const at.Tensor& d) except * nogil:
    cdef at.Tensor none
    with gil:
        asked.append((a.defined(), b.defined(), c.defined(), d.defined()))
    return at.mul(a, 2) if a.defined() else none, none


cdef Function[tuple4[at.Tensor, at.Tensor, at.Tensor, at.Tensor]] parts_function
parts_function.define("Parts", parts_forward, parts_backward)


def parts(torch.Tensor x not None, bint materialize=True):
    cdef tuple4[at.Tensor, at.Tensor, at.Tensor, at.Tensor] all = parts_function.apply(x.cdata, materialize)
    return torch.wrap(get0(all)), torch.wrap(get1(all)), torch.wrap(get2(all)), torch.wrap(get3(all))


# Lists, and tensors that may be missing.

cdef vector[at.Tensor] shifted_forward(
        Context& ctx, const vector[at.Tensor]& xs, const optional[at.Tensor]& shift) except * nogil:
    cdef vector[at.Tensor] result
    cdef size_t i
    for i in range(xs.size()):
        result.push_back(at.add(xs[i], shift.value()) if shift.has_value() else at.mul(xs[i], 1))
    ctx.state[int64_t]()[0] = shift.has_value()
    return result


cdef vector[at.Tensor] shifted_backward(Context& ctx, const vector[at.Tensor]& grads) except * nogil:
    cdef vector[at.Tensor] result = grads
    cdef at.Tensor total
    if ctx.state[int64_t]()[0]:
        total = at.sum(at.stack(grads), 0)
    result.push_back(total)
    return result


cdef Function[vector[at.Tensor]] shifted_function
shifted_function.define("Shifted", shifted_forward, shifted_backward)


def shifted(list xs, shift):
    cdef vector[at.Tensor] tensors, result
    cdef optional[at.Tensor] maybe
    for x in xs:
        tensors.push_back(torch.unpack(x))
    if shift is not None:
        maybe = optional[at.Tensor](torch.unpack(shift))
    result = shifted_function.apply(tensors, maybe)
    return [torch.wrap(one) for one in result]


def shifted_by(list xs, torch.Tensor shift):
    """The same with a shift that is a tensor, or C++'s word for none, where forward takes an optional one."""
    cdef vector[at.Tensor] tensors, result
    for x in xs:
        tensors.push_back(torch.unpack(x))
    if shift is None:
        result = shifted_function.apply(tensors, nullopt)
    else:
        result = shifted_function.apply(tensors, shift.cdata)
    return [torch.wrap(one) for one in result]


# Keeps a tensor that it made itself.

cdef at.Tensor silu_forward(Context& ctx, const at.Tensor& x) except * nogil:
    cdef at.Tensor s = at.sigmoid(x)
    ctx.save_for_backward(x, s)
    return at.mul(x, s)


cdef at.Tensor silu_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    # s, made in forward, is no function of x to autograd: for a second derivative it is computed again.
    cdef at.Tensor x = ctx.saved_tensor(0), s = at.sigmoid(x)
    return at.mul(grad, at.add(s, at.mul(at.mul(x, s), at.sub(at.ones_like(s), s))))


cdef Function[at.Tensor] silu_function
silu_function.define("Silu", silu_forward, silu_backward)


def silu(torch.Tensor x not None):
    return torch.wrap(silu_function.apply(x.cdata))


# The other shape: an operator with an Autograd kernel of its own, which applies a function around the kernel below it.

cdef at.Tensor sine(const at.Tensor& x) except * nogil:
    return at.sin(x)


cdef at.Tensor sine_forward(Context& ctx, const at.Tensor& x) except * nogil:
    cdef AutoDispatchBelowAutograd _below = AutoDispatchBelowAutograd()
    ctx.save_for_backward(x)
    return Operator[at.Tensor](b"interop_test::sine").call(x)


cdef at.Tensor sine_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    return at.mul(grad, at.cos(ctx.saved_tensor(0)))


cdef Function[at.Tensor] sine_function
sine_function.define("Sine", sine_forward, sine_backward)


cdef at.Tensor sine_autograd(const at.Tensor& x) except * nogil:
    return sine_function.apply(x)


define("interop_test::sine", "(Tensor x) -> Tensor", Tag.pt2_compliant_tag)
impl("interop_test::sine", "CompositeExplicitAutograd", sine)
impl("interop_test::sine", "Autograd", sine_autograd)


# Asks its context in forward, and keeps nothing.

cdef at.Tensor asking_forward(Context& ctx, const at.Tensor& x, bint take) except * nogil:
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(x)
    with gil:
        asked.append((ctx.needs_input_grad(0), ctx.saved_tensors()))
    return at.mul(ctx.saved_tensor(0) if take else x, 2)


cdef (at.Tensor, at.Tensor) asking_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    cdef at.Tensor none
    return at.mul(grad, 2), none


cdef Function[at.Tensor] asking_function
asking_function.define("Asking", asking_forward, asking_backward)


def asking(torch.Tensor x not None, bint take):
    return torch.wrap(asking_function.apply(x.cdata, take))


# A state that is counted, and a backward that calls the engine on its own node, once.

cdef extern from *:
    """
    #include <atomic>
    struct Counted {
      static inline std::atomic<int> alive = 0;
      Counted() { ++alive; }
      ~Counted() { --alive; }
    };
    static int counted_now() { return Counted::alive; }
    """
    cppclass Counted:
        Counted()
    int counted_now()


cdef at.Tensor counted_forward(Context& ctx, const at.Tensor& x) except * nogil:
    ctx.state[Counted]()
    return at.mul(x, 1)


again = []


cdef at.Tensor counted_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    ctx.state[Counted]()
    with gil:
        if again:
            again.pop()()
    return grad


cdef Function[at.Tensor] counted_function
counted_function.define("Counted", counted_forward, counted_backward)


def counted(torch.Tensor x not None):
    return torch.wrap(counted_function.apply(x.cdata))


def counted_alive():
    return counted_now()


# Changes its input in place, and keeps it.

cdef at.Tensor exp_in_place_forward(Context& ctx, at.Tensor& x) except * nogil:
    ctx.state[Counted]()
    x.exp_()
    ctx.mark_dirty(x)
    ctx.save_for_backward(x)
    return x


cdef Function[at.Tensor] exp_in_place_function
exp_in_place_function.define("ExpInPlace", exp_in_place_forward, exp_backward)


def exp_(torch.Tensor x not None):
    return torch.wrap(exp_in_place_function.apply(x.cdata))


# Changes its input in place, and keeps a view of it that is another input.

cdef at.Tensor times_exp_forward(Context& ctx, at.Tensor& x, const at.Tensor& view, const at.Tensor& w) except * nogil:
    x.mul_(at.exp(w))
    ctx.mark_dirty(x)
    ctx.save_for_backward(view)
    return x


cdef tuple3[at.Tensor, at.Tensor, at.Tensor] times_exp_backward(Context& ctx, const at.Tensor& grad) except * nogil:
    return make_tuple(at.Tensor(), at.Tensor(), at.mul(grad, ctx.saved_tensor(0)).sum())


cdef Function[at.Tensor] times_exp_function
times_exp_function.define("TimesExp", times_exp_forward, times_exp_backward)


def times_exp_(torch.Tensor x not None, torch.Tensor view not None, torch.Tensor w not None):
    return torch.wrap(times_exp_function.apply(x.cdata, view.cdata, w.cdata))
