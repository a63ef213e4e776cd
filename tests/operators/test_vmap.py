"""Rules for vmap written in Cython: they give what the same rules in Python give, and what a loop gives."""

import functools

import pytest
import torch

pytestmark = pytest.mark.native

OPS = torch.ops.interop_vmap
FUNC = torch.func

reference_grows = pytest.mark.unchecked(by="leaks", reason="torch keeps some references of its transforms and rules")


def at_front(x, dim):
    return x if dim is None else x.movedim(dim, 0)


def product_rule(info, in_dims, a, b, s):
    return torch.matmul(at_front(a, in_dims[0]), at_front(b, in_dims[1])) * s, 0


def products_rule(info, in_dims, x, others, gaps, last=None):
    in_dims = (*in_dims, None)[:4]  # of the arguments that were given
    every = x.unsqueeze(0).repeat_interleave(info.batch_size, 0) if in_dims[0] is None else at_front(x, in_dims[0])
    total = every.clone() if last is None else every * at_front(last, in_dims[3])
    for gap, dim in zip(gaps, in_dims[2], strict=True):
        total = total if gap is None else total + at_front(gap, dim)
    result = total, [other * 2 for other in others], sum(gap is None for gap in gaps)
    return result, (0, list(in_dims[1]), None)


def scale_rule(info, in_dims, x, factor):
    x.movedim(in_dims[0], -1).mul_(factor)
    return x, in_dims[0]


def double_out_rule(info, in_dims, x, out):
    return out.mul_(2), in_dims[1]


def double_each_rule(info, in_dims, xs):
    return [x.mul_(2) for x in xs], in_dims[0]


def noise_rule(info, in_dims, x):
    return torch.rand_like(x.select(in_dims[0], 0)), None


@pytest.fixture(scope="module")
def rules(mapped):
    """The rules in Python, of the operators whose names say so."""
    library = torch.library.Library("interop_vmap", "FRAGMENT")
    for name, rule in {
        "product_in_python": product_rule,
        "products_in_python": products_rule,
        "scale_in_python_": scale_rule,
        "double_out_in_python": double_out_rule,
        "double_each_in_python": double_each_rule,
        "noise_in_python": noise_rule,
    }.items():
        torch.library.register_vmap(f"interop_vmap::{name}", rule, lib=library)
    yield
    library._destroy()


@pytest.fixture(autouse=True)
def _loaded(mapped, rules):
    """The operators and their rules exist, and nothing calls the kernel for each example."""
    mapped.seen.clear()
    torch._C._functorch._set_vmap_fallback_enabled(False)
    yield
    torch._C._functorch._set_vmap_fallback_enabled(True)


def draw(*shape):
    return torch.rand(shape, dtype=torch.float64) + 0.5


def scaled(name):
    """The product with a number, as a function of two tensors."""
    return lambda a, b: getattr(OPS, name)(a, b, 1.5)


def summed(f):
    return lambda a, b: f(a, b).sin().sum()


CYTHON, PYTHON = scaled("product"), scaled("product_in_python")


def plain(a, b):
    """The same out of torch's own operators."""
    return a @ b * 1.5


TRANSFORMS = {
    "both": lambda f, a, b: FUNC.vmap(f)(a, b),
    "first": lambda f, a, b: FUNC.vmap(f, in_dims=(0, None))(a, b[0]),
    "second": lambda f, a, b: FUNC.vmap(f, in_dims=(None, 0))(a[0], b),
    "dimensions": lambda f, a, b: FUNC.vmap(f, in_dims=(1, -1))(a.movedim(0, 1), b.movedim(0, -1)),
    "out_dims": lambda f, a, b: FUNC.vmap(f, in_dims=(1, 2), out_dims=-1)(a.movedim(0, 1), b.movedim(0, 2)),
    "in chunks": lambda f, a, b: FUNC.vmap(f, chunk_size=2)(a, b),
    "nested": lambda f, a, b: FUNC.vmap(FUNC.vmap(f, in_dims=(None, 0)), in_dims=(0, None))(a, b),
    "nested, both": lambda f, a, b: FUNC.vmap(FUNC.vmap(f, in_dims=(1, 0)), in_dims=(0, None), out_dims=1)(
        a.unsqueeze(2).expand(-1, -1, 5, -1), b
    ),
    "outer level only": lambda f, a, b: FUNC.vmap(
        lambda x, y: FUNC.vmap(lambda z: f(x, y) * z)(torch.arange(3.0, dtype=x.dtype))
    )(a, b),
    "grad": lambda f, a, b: FUNC.grad(summed(f), argnums=(0, 1))(a[0], b[0]),
    "vmap of grad": lambda f, a, b: FUNC.vmap(FUNC.grad(summed(f), argnums=(0, 1)))(a, b),
    "grad of vmap": lambda f, a, b: FUNC.grad(summed(FUNC.vmap(f, in_dims=(0, None))), argnums=(0, 1))(a, b[0]),
    "grad of vmap of grad": lambda f, a, b: FUNC.grad(summed(FUNC.vmap(FUNC.grad(summed(f)))), argnums=(0, 1))(a, b),
    "vmap of grad of vmap": lambda f, a, b: FUNC.vmap(FUNC.grad(summed(FUNC.vmap(f, in_dims=(None, 0)))), (0, None))(
        a, b
    ),
    "jacrev": lambda f, a, b: FUNC.jacrev(f, argnums=(0, 1))(a[0], b[0]),
    "jacfwd": lambda f, a, b: FUNC.jacfwd(f, argnums=(0, 1))(a[0], b[0]),
    "hessian": lambda f, a, b: FUNC.hessian(summed(f), argnums=(0, 1))(a[0], b[0]),
    "vmap of jacfwd": lambda f, a, b: FUNC.vmap(FUNC.jacfwd(f))(a, b),
    "jvp of vmap": lambda f, a, b: FUNC.jvp(FUNC.vmap(f), (a, b), (a.cos(), b.sin())),
    "vmap of jvp": lambda f, a, b: FUNC.vmap(lambda x, y: FUNC.jvp(f, (x, y), (x.cos(), y.sin())))(a, b),
    "vjp of vmap": lambda f, a, b: FUNC.vjp(FUNC.vmap(f), a, b)[1](torch.ones(5, 3, 2, dtype=a.dtype)),
}


@reference_grows
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    """A rule in Cython gives the same as one in Python, and as torch's own operators."""
    transform, arguments = TRANSFORMS[name], (draw(5, 3, 4), draw(5, 4, 2))
    mine = transform(CYTHON, *arguments)
    torch.testing.assert_close(mine, transform(PYTHON, *arguments), rtol=0, atol=0)
    torch.testing.assert_close(mine, transform(plain, *arguments))


def test_a_loop(mapped):
    """One call of the rule gives what a loop over the examples gives, and the rule reads what the call is about."""
    mapped.seen.clear()
    a, b = draw(3, 5, 4), draw(4, 2)
    mine = FUNC.vmap(CYTHON, in_dims=(1, None))(a, b)
    torch.testing.assert_close(mine, torch.stack([CYTHON(one, b) for one in a.unbind(1)]))
    assert mapped.seen == [(5, (1, -1, -1), 1.5)]


@reference_grows
def test_which_level_calls_the_rule(mapped):
    """A rule is called once for each level that has examples in an argument, and for no other one."""
    a, b = draw(5, 3, 4), draw(5, 4, 2)
    TRANSFORMS["nested"](CYTHON, a, b)
    assert mapped.seen == [(5, (-1, 0, -1), 1.5)]  # it is made of torch's operators, which the outer level maps
    mapped.seen.clear()
    TRANSFORMS["outer level only"](CYTHON, a, b)
    assert mapped.seen == [(5, (0, 0, -1), 1.5)]


@pytest.mark.parametrize("requires", [(True, True), (True, False), (False, True)])
def test_gradients_without_a_transform(mapped, requires):
    """vmap of tensors that require grad, which no transform wraps."""
    mapped.seen.clear()
    tensors = [one.requires_grad_(flag) for one, flag in zip((draw(5, 3, 4), draw(4, 2)), requires, strict=True)]
    found = []
    for f in (CYTHON, PYTHON, plain):
        result = FUNC.vmap(f, in_dims=(0, None))(*tensors)
        found.append(torch.autograd.grad(result.sin().sum(), [one for one in tensors if one.requires_grad]))
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=0)
    torch.testing.assert_close(found[0], found[2])


@pytest.mark.long
@reference_grows
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", ["both", "vmap of grad", "nested"])
@pytest.mark.extended
def test_compile(name, dynamic):
    """torch.compile traces the rule."""
    torch._dynamo.reset()
    options = {"backend": "aot_eager", "fullgraph": True, "dynamic": dynamic}
    try:
        torch.compile(functools.partial(TRANSFORMS[name], plain), **options)(draw(5, 3, 4), draw(5, 4, 2))
    except torch._dynamo.exc.TorchRuntimeError:
        pytest.skip("this torch cannot compile its own product there")
    torch._dynamo.reset()
    compiled = torch.compile(functools.partial(TRANSFORMS[name], scaled("product_traced")), **options)
    with torch._dynamo.config.patch(error_on_recompile=dynamic):
        for count in (5, 6, 7):
            arguments = draw(count, 3, 4), draw(count, 4, 2)
            torch.testing.assert_close(compiled(*arguments), TRANSFORMS[name](plain, *arguments))


LISTS = {  # the dimensions of the arguments
    "all": (0, [0, 1], [0, 0], 0),
    "dimensions": (1, [1, 0], [1, 0], 1),
    "only x": (0, [None, None], [None, None], None),
    "no x": (None, [0, 0], [1, 0], 0),
    "some": (None, [None, 1], [None, None], None),
    "gaps": (None, [None, None], [1, None], None),
    "last": (None, [None, None], [None, None], 1),
}


class TestLists:
    """Lists and optional tensors, some of them with examples."""

    @staticmethod
    def arguments(in_dims):
        return torch.utils._pytree.tree_map(
            lambda dim: draw(3) if dim is None else draw(3, 3)[:2].movedim(0, dim),
            in_dims,
            is_leaf=lambda dim: dim is None,
        )

    @pytest.mark.parametrize("name", LISTS)
    def test_each_has_its_dimension(self, name):
        """A tensor in a list may have examples or not, in any dimension; the same holds for results."""
        in_dims = LISTS[name]
        given = self.arguments(in_dims)
        batched = []

        def called(op):
            def function(x, others, gaps, last):
                total, each, missing = op(x, others, [gaps[0], None, gaps[1]], last)
                batched.append([torch._C._functorch.is_batchedtensor(one) for one in (total, *each)])
                assert missing == 1
                return total, *each

            return FUNC.vmap(function, in_dims=in_dims)(*given)

        mine = called(OPS.products)
        torch.testing.assert_close(mine, called(OPS.products_in_python), rtol=0, atol=0)
        assert batched[0] == batched[1] == [True, *(dim is not None for dim in in_dims[1])]
        x, others, gaps, last = given
        for i in range(2):
            of = functools.partial(self.example, i)
            total, each, _ = OPS.products(
                of(x, in_dims[0]),
                [of(one, dim) for one, dim in zip(others, in_dims[1], strict=True)],
                [of(gaps[0], in_dims[2][0]), None, of(gaps[1], in_dims[2][1])],
                of(last, in_dims[3]),
            )
            torch.testing.assert_close([one[i] for one in mine], [total, *each])

    @staticmethod
    def example(i, tensor, dim):
        return tensor if dim is None else tensor.select(dim, i)

    @pytest.mark.parametrize("op", ["products", "products_in_python"])
    def test_what_is_missing(self, op):
        """Empty lists, and an optional tensor that is missing."""
        x = draw(2, 3)
        (total,) = FUNC.vmap(lambda one: getattr(OPS, op)(one, [], [])[:1])(x)
        assert torch.equal(total, x)


class TestChanges:
    """Operators that change an argument."""

    @pytest.mark.parametrize("op", ["scale_", "scale_in_python_"])
    @pytest.mark.parametrize("dim", [0, 1])
    def test_the_argument_is_the_result(self, op, dim):
        x, factor = draw(3, 3), torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
        before, same = x.clone(), []

        def function(one, number):
            result = getattr(OPS, op)(one, number)
            same.append(result is one)
            return result

        result = FUNC.vmap(function, in_dims=(dim, 0))(x, factor)
        assert same == [True]
        expected = before.movedim(dim, 0) * factor[:, None]
        assert torch.equal(result, expected)
        assert torch.equal(x.movedim(dim, 0), expected)
        assert x._version > 0

    @pytest.mark.parametrize("op", ["double_out", "double_out_in_python"])
    @pytest.mark.parametrize("in_dims", [(0, 1), (1, 0)])
    def test_one_tensor_given_twice(self, op, in_dims):
        """The result is the argument of the schema, although another argument is the same tensor."""
        x = draw(2, 2)
        expected = x.movedim(in_dims[1], 0) * 2
        assert torch.equal(FUNC.vmap(getattr(OPS, op), in_dims=in_dims)(x, x), expected)

    @pytest.mark.parametrize("op", ["double_each", "double_each_in_python"])
    def test_a_list_of_arguments_is_the_result(self, op):
        xs, same = [draw(2, 3), draw(3, 2)], []
        expected = [xs[0] * 2, xs[1].t() * 2]

        def function(*given):
            results = getattr(OPS, op)(list(given))
            same.extend(result is one for result, one in zip(results, given, strict=True))
            return results

        results = FUNC.vmap(function, in_dims=(0, 1))(*xs)
        assert same == [True, True]
        assert all(map(torch.equal, results, expected))

    def test_without_a_result(self):
        x = draw(4, 3)
        FUNC.vmap(lambda one: OPS.fill_(one, 0.5) or one)(x)
        assert torch.equal(x, torch.full_like(x, 4.5))

    def test_an_argument_that_all_share(self):
        with pytest.raises(RuntimeError, match="scale_ cannot change an argument that all examples share"):
            FUNC.vmap(OPS.scale_, in_dims=(None, 0))(draw(3), draw(2))


def test_results_that_are_no_tensors():
    found = []
    FUNC.vmap(lambda one: found.append(OPS.facts(one, True, 3, 0.25)) or one)(draw(5, 2))
    assert found == [(8, 0.25, True)]


@pytest.mark.parametrize("randomness", ["error", "same", "different"])
def test_randomness(mapped, randomness):
    """The rule reads the flag, and torch enforces it for the random operators in the rule."""
    x, found = draw(4, 3), []
    mapped.seen.clear()
    for op in (OPS.noise, OPS.noise_in_python, torch.rand_like):
        torch.manual_seed(0)
        try:
            found.append(FUNC.vmap(op, randomness=randomness)(x))
        except RuntimeError as error:
            found.append(str(error))
    assert mapped.seen == [randomness]
    if randomness == "error":
        assert all(one.startswith("vmap: called random operation while in randomness error mode") for one in found)
    else:
        assert torch.equal(found[0], found[1])
        assert torch.equal(found[0], found[2])
        assert (found[0][0] == found[0][1]).all() == (randomness == "same")


@pytest.mark.unchecked(by="leaks", reason="torch.compile keeps what it has compiled")
class TestSymbolicSizes:
    """A rule is traced for any number of examples."""

    @staticmethod
    def traced(op, dynamic):
        torch._dynamo.reset()
        return torch.compile(
            lambda x: FUNC.vmap(lambda one: op(one, x.shape[1]))(x),
            backend="aot_eager",
            fullgraph=True,
            dynamic=dynamic,
        )

    @pytest.mark.long
    def test_symbols(self):
        compiled = self.traced(OPS.repeated, True)
        with torch._dynamo.config.patch(error_on_recompile=True):
            for count in (3, 4, 5):
                x = draw(count, count + 1)
                assert torch.equal(compiled(x), x.repeat_interleave(count + 1, 1))

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("repeated_by_number", r"repeated_by_number: the rule for vmap: argument 2 \S+ is symbolic"),
            ("counted", r"batch_size\(\) is symbolic here, .* Write sym_batch_size\(\)"),
        ],
    )
    def test_numbers(self, name, message):
        """A number would be compiled for one size: it raises, and says what to write."""
        op, x = getattr(OPS, name), draw(3, 4)
        factor = 3 if name == "counted" else 1
        assert torch.equal(FUNC.vmap(lambda one: op(one, 2))(x), x.repeat_interleave(2, 1) * factor)
        with pytest.raises(RuntimeError, match=message):
            self.traced(op, True)(x)


@pytest.mark.parametrize(
    ("what", "error", "message"),
    [
        (0, KeyError, "a key"),
        (1, IndexError, "result 1 of the rule for vmap has 2 dimensions, so the examples cannot be in dimension 2;"),
        (2, ValueError, r"has the shape \[3, 4\], and dimension 1 is to have the examples, which are 3"),
        (3, IndexError, r"set_out_dim\(0, ...\): the dimension is -2; give one that is counted from 0, or -1"),
        (4, IndexError, r"set_out_dim\(2, ...\): there are 2 results, counted from 0"),
        (5, IndexError, r"set_out_dim\(-1, ...\): there are 2 results"),
        (6, IndexError, "set_out_dim: the element is negative, -1"),
        (7, IndexError, r"in_dim\(3\): there are 3 arguments, counted from 0"),
        (8, IndexError, r"in_dim\(-1\): there are 3 arguments"),
        (9, TypeError, r"argument 1 is a list of tensors; in_dim\(argument, element\) is about one of them"),
        (10, IndexError, r"in_dim\(1, 2\): the argument has 2 tensors"),
        (11, IndexError, r"in_dim\(1, -1\): the argument has 2 tensors"),
        (12, RuntimeError, "must be a matrix"),
        (13, IndexError, "result 1 of the rule for vmap has 0 dimensions"),
        (16, IndexError, r"set_out_dim\(0, 1, 0\): result 0 has 1 tensor$"),
    ],
)
def test_a_wrong_rule(mapped, what, error, message):
    mapped.seen.clear()
    with pytest.raises(error, match=message) as raised:
        FUNC.vmap(lambda one: OPS.wrong(one, [one, one], what)[0])(draw(3, 4))
    assert str(raised.value).startswith("interop_vmap::wrong: ") or what in (0, 12)
    assert torch.equal(FUNC.vmap(CYTHON)(a := draw(2, 3, 4), b := draw(2, 4, 2)), FUNC.vmap(PYTHON)(a, b))


def test_a_result_that_is_a_tensor_of_vmap():
    with pytest.raises(ValueError, match=r"result 1 of the rule for vmap is a tensor of vmap already, as a random op"):
        FUNC.vmap(lambda one: OPS.wrong(one, [], 15)[0], randomness="different")(draw(3, 4))


def test_a_dimension_of_a_number():
    """A number has no dimension, and set_out_dim does not change it."""
    assert FUNC.vmap(lambda one: one * OPS.wrong(one, [], 14)[1])(torch.ones(3, 2)).eq(14).all()


def test_a_tensor_that_has_escaped():
    kept = []
    FUNC.vmap(lambda one: kept.append(one) or one)(draw(3, 4))
    with pytest.raises(
        RuntimeError, match=r"interop_vmap::noise: an argument is a tensor of torch.func.vmap, which has"
    ):
        OPS.noise(kept[0])


def test_a_gradient_that_a_loop_in_a_rule_would_lose():
    x = torch.rand(3, 4, dtype=torch.float64, requires_grad=True)
    vmap = torch.vmap
    with pytest.raises(RuntimeError, match="cube: input 0 requires grad, and what is computed here belongs to no"):
        vmap(OPS.cube_of_looping_rule)(x)
    with torch.no_grad():
        assert torch.allclose(vmap(OPS.cube_of_looping_rule)(x), x**3)
    with pytest.raises(TypeError, match=r"torch\.func transform"):
        vmap(vmap(OPS.cube_of_looping_rule))(x)
    expected = torch.autograd.grad((x**3).sum(), x)[0]
    for operator in (OPS.cube_of_calling_rule, OPS.cube_of_applying_rule):
        assert torch.allclose(torch.autograd.grad(vmap(operator)(x).sum(), x)[0], expected)
        assert torch.allclose(vmap(torch.func.grad(operator))(x.detach().reshape(-1)), expected.reshape(-1))


@pytest.mark.parametrize(
    ("what", "error", "message"),
    [
        ("unknown operator", RuntimeError, r"there is no operator interop_vmap::unknown; define it first"),
        ("name", ValueError, r"an operator's name has the form 'namespace::name'"),
        ("twice", RuntimeError, "the operator has a rule already, .* registered by the module .*mapped"),
        (
            "after Python",
            RuntimeError,
            "the operator has a rule already, or another kernel for FuncTorchBatched, registered by code",
        ),
        ("number of arguments", TypeError, "the schema has 3 arguments, and the rule 1"),
        (
            "type of an argument",
            TypeError,
            "argument 3 's' is float in the schema, and int in the rule; declare it double",
        ),
        ("result", TypeError, "the schema has 1 result, and the rule 0"),
        ("change that is not in the schema", TypeError, "argument 1 'a' is not changed in the schema"),
    ],
)
def test_wrong_use(mapped, what, error, message):
    with pytest.raises(error, match=message) as raised:
        mapped.refused(what)
    assert str(raised.value).startswith('register_vmap("')
