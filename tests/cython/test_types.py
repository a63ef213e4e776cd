"""torch's Python types as C types: dtype, device, layout, memory_format, Size, Generator, Stream."""

import copy
import gc
import sys
import threading

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.native


def all_of(kind):
    """Every constant of a type in torch's module, without the aliases that some have."""
    return sorted({value for value in vars(torch).values() if type(value) is kind}, key=str)


DTYPES, LAYOUTS, FORMATS = all_of(torch.dtype), all_of(torch.layout), all_of(torch.memory_format)
DEVICES = [torch.device(name) for name in ("cpu", "cpu:0", "cuda", "cuda:0", "cuda:7", "meta", "mps", "xpu:127")]
SIZES = [torch.Size(shape) for shape in ((), (0,), (2, 3), (1,) * 64, (2**62, -(2**63), 2**63 - 1))]
STREAMS = [(0, -1, 0), (5, 0, 1), (-(2**63), 3, 1), (2**63 - 1, 127, 14)]  # stream_id, device_index, device_type


class Generator(torch.Generator):
    """A subclass made in Python."""


class Stream(torch.Stream):
    """A subclass made in Python, as torch.cuda.Stream is."""


def make_stream(stream_id, device_index, device_type, kind=torch.Stream):
    return kind(stream_id=stream_id, device_index=device_index, device_type=device_type)


# One object of each type, kept alive here.
EXAMPLES = {
    "dtype": torch.float64,
    "device": torch.device("cpu", 3),
    "layout": torch.sparse_coo,
    "memory_format": torch.channels_last,
    "Size": torch.Size((2, 1000, 70000)),
    "Generator": torch.Generator(),
    "Stream": make_stream(700, 0, 1),
}
# The functions of the test module that convert an object and return it; those that read one without `not None`.
ROUNDTRIPS = {name: name.lower() for name in EXAMPLES}
READERS = {name: f"read_{name.lower()}" for name in EXAMPLES if name != "Size"}
FIELDS = {
    "dtype": "scalar_type",
    "device": "device",
    "layout": "layout",
    "memory_format": "memory_format",
    "Generator": "cdata",
    "Stream": "stream_id",
}
SINGLE = ("dtype", "layout", "memory_format")  # types with one object for each value

# The types' own names.
SHOWN = {name: f"torch.{name}" for name in EXAMPLES} | {"Generator": "torch._C.Generator"}


def fake(name):
    """An object that passes isinstance() but is not of the type."""
    liar = type("Liar", (), {"__class__": getattr(torch, name)})()
    assert isinstance(liar, getattr(torch, name))
    return liar


class TestRoundTrip:
    def test_the_lists_are_not_empty(self):
        assert len(DTYPES) > 40
        assert {torch.strided, torch.sparse_coo, torch.jagged} <= set(LAYOUTS)
        assert {torch.preserve_format, torch.contiguous_format, torch.channels_last_3d} <= set(FORMATS)

    @pytest.mark.parametrize("value", DTYPES, ids=str)
    def test_dtype(self, pytypes, value):
        assert pytypes.dtype(value) is value
        assert pytypes.through_header(value) is value

    @pytest.mark.parametrize("value", LAYOUTS, ids=str)
    def test_layout(self, pytypes, value):
        assert pytypes.layout(value) is value
        assert pytypes.through_header(value) is value

    @pytest.mark.parametrize("value", FORMATS, ids=str)
    def test_memory_format(self, pytypes, value):
        assert pytypes.memory_format(value) is value
        assert pytypes.through_header(value) is value

    @pytest.mark.parametrize("value", DEVICES, ids=str)
    def test_device(self, pytypes, value):
        for result in (pytypes.device(value), pytypes.through_header(value)):
            assert type(result) is torch.device
            assert (result, result.type, result.index) == (value, value.type, value.index)

    @pytest.mark.parametrize("value", SIZES, ids=lambda size: f"{len(size)} numbers")
    def test_size(self, pytypes, value):
        result = pytypes.size(value)
        assert type(result) is torch.Size
        assert result == value
        assert result.numel() == value.numel()
        assert copy.deepcopy(result) == value

    @pytest.mark.unchecked(by="leaks", reason="torch's comparison of two streams loses a reference to True")
    @pytest.mark.parametrize("value", STREAMS, ids=str)
    @pytest.mark.parametrize("kind", [torch.Stream, Stream])
    def test_stream(self, pytypes, value, kind):
        stream = make_stream(*value, kind)
        for result in (pytypes.stream(stream), pytypes.through_header(stream)):
            assert type(result) is torch.Stream
            assert result == stream
            assert (result.stream_id, result.device_index) == value[:2]
            assert result.device_type == stream.device_type

    def test_constants(self, pytypes):
        assert pytypes.constants() == (
            torch.float32,
            torch.bfloat16,
            torch.strided,
            torch.sparse_csr,
            torch.channels_last,
            torch.device("cpu"),
            torch.device("cuda", 3),
        )

    def test_of_a_tensor(self, pytypes):
        x = torch.empty(3, 0, 2, dtype=torch.float16, device="meta")
        result = pytypes.of_tensor(x)
        assert result == (torch.float16, torch.device("meta"), torch.strided, x.shape)
        assert type(result[3]) is torch.Size

    def test_the_fields_are_what_aten_takes(self, pytypes):
        spec = pytypes.Spec()
        spec.dtype, spec.device, spec.layout = torch.float16, torch.device("meta"), torch.strided
        spec.memory_format, spec.size = torch.channels_last, torch.Size((2, 3, 4, 5))
        result = spec.empty()
        assert (result.dtype, result.device, result.layout) == (torch.float16, torch.device("meta"), torch.strided)
        assert result.shape == spec.size
        assert result.is_contiguous(memory_format=torch.channels_last)

    def test_devices_compare(self, pytypes):
        assert pytypes.same_device(torch.device("cpu", 1), torch.device("cpu", 1)) == (True, True, True, False)
        assert pytypes.same_device(torch.device("cpu", 1), torch.device("cpu")) == (False, True, False, True)
        assert pytypes.is_cpu(torch.device("cpu"))
        assert not pytypes.is_cpu(torch.device("meta"))


class TestGenerators:
    """C++ does not know the Python object of a generator made in Python, so only the state is shared, not identity."""

    @pytest.fixture(params=["default", "new", "subclass"])
    def generator(self, request):
        """A generator of each kind, whose state is restored afterwards."""
        made = {"default": lambda: torch.default_generator, "new": torch.Generator, "subclass": Generator}
        one = made[request.param]()
        state = one.get_state()
        yield one
        one.set_state(state)

    def test_it_is_the_same_generator(self, pytypes, generator):
        for result in (pytypes.generator(generator), pytypes.through_header(generator)):
            result.manual_seed(11)
            assert generator.initial_seed() == 11
            expected = torch.rand(3, generator=result)
            generator.manual_seed(11)
            assert torch.equal(torch.rand(3, generator=generator), expected)
            assert not torch.equal(torch.rand(3, generator=result), expected)  # its state has advanced

    def test_the_object_that_was_made_is_found_again(self, pytypes, generator):
        first = pytypes.generator(generator)
        assert pytypes.generator(generator) is first
        assert pytypes.generator(first) is first
        assert pytypes.through_header(generator) is first

    def test_an_undefined_one_is_none(self, pytypes):
        assert pytypes.undefined_generator() is None

    def test_the_cpp_generator_outlives_its_objects(self, pytypes):
        generator = torch.Generator().manual_seed(5)
        expected = torch.rand(4, generator=torch.Generator().manual_seed(5))
        held = pytypes.HeldGenerator(generator)
        wrapped = held.get()
        del generator
        assert held.get().initial_seed() == 5
        del wrapped
        gc.collect()
        assert torch.equal(held.random(torch.empty(4)), expected)
        assert held.get().initial_seed() == 5

    def test_threads_share_one(self, pytypes):
        generator = torch.Generator()
        threads = [threading.Thread(target=pytypes.repeat, args=("Generator", generator, 2000)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert pytypes.generator(generator).initial_seed() == generator.initial_seed()


class TestChecks:
    @pytest.mark.parametrize("name", EXAMPLES)
    def test_only_its_own_objects_pass(self, pytypes, name):
        function = getattr(pytypes, ROUNDTRIPS[name])
        function(EXAMPLES[name])
        others = [value for other, value in EXAMPLES.items() if other != name]
        for wrong in (*others, None, 6, "float32", (2, 3), torch.ones(1), getattr(torch, name), fake(name)):
            with pytest.raises(TypeError, match=rf"expected {SHOWN[name]}, got .*{type(wrong).__name__}"):
                function(wrong)

    @pytest.mark.parametrize("name", EXAMPLES)
    def test_of_the_header(self, pytypes, name):
        assert pytypes.kinds(EXAMPLES[name]) == [name]
        assert pytypes.kinds(fake(name)) == []
        assert pytypes.kinds(getattr(torch, name)) == []

    @pytest.mark.parametrize("wrong", [None, 6, "cpu", (2, 3), torch.ones(1)], ids=repr)
    def test_of_the_header_for_others(self, pytypes, wrong):
        assert pytypes.kinds(wrong) == []

    def test_subclasses(self, pytypes):
        assert pytypes.kinds(Generator()) == ["Generator"]
        assert pytypes.kinds(make_stream(1, 0, 1, Stream)) == ["Stream"]

    @pytest.mark.parametrize("name", READERS)
    def test_none_has_no_field(self, pytypes, name):
        """None may be passed without `not None`, as always in Cython, but it has no fields."""
        with pytest.raises(AttributeError, match=f"'NoneType' object has no attribute '{FIELDS[name]}'"):
            getattr(pytypes, READERS[name])(None)
        with pytest.raises(TypeError, match=rf"expected {SHOWN[name]}, got int"):
            getattr(pytypes, READERS[name])(3)
        getattr(pytypes, READERS[name])(EXAMPLES[name])

    @pytest.mark.parametrize("name", EXAMPLES)
    def test_attributes(self, pytypes, name):
        spec, attribute = pytypes.Spec(), name.lower()
        assert getattr(spec, attribute) is None
        setattr(spec, attribute, EXAMPLES[name])
        assert getattr(spec, attribute) is EXAMPLES[name]
        for wrong in (3, fake(name)):
            with pytest.raises(TypeError, match=f"Cannot convert {type(wrong).__name__} to {SHOWN[name]}"):
                setattr(spec, attribute, wrong)
        assert getattr(spec, attribute) is EXAMPLES[name]


class TestNumbers:
    """Conversions between C++ enums and Python objects never give another dtype than the one meant."""

    def test_each_number_is_one_dtype(self, pytypes):
        """Each number is one constant of torch's module, and no dtype is left out."""
        found = {}
        for number in range(len(DTYPES)):
            found[number] = pytypes.number_of_dtype(number)
            assert pytypes.read_dtype(found[number]) == number
        assert set(found.values()) == set(DTYPES)

    @pytest.mark.parametrize("name", SINGLE)
    @pytest.mark.parametrize("number", [-128, -1, 60, 127])
    def test_a_number_that_is_none(self, pytypes, name, number):
        with pytest.raises(ValueError, match=rf"^{number} is not an at\.(ScalarType|Layout|MemoryFormat)$"):
            getattr(pytypes, f"number_of_{name}")(number)

    @pytest.mark.parametrize(("values", "name"), [(LAYOUTS, "layout"), (FORMATS, "memory_format")])
    def test_the_first_number_behind_the_last(self, pytypes, values, name):
        function = getattr(pytypes, f"number_of_{name}")
        assert {function(number) for number in range(len(values))} == set(values)
        with pytest.raises(ValueError, match=f"{len(values)} is not an at"):
            function(len(values))

    def test_undefined_is_no_dtype(self, pytypes):
        with pytest.raises(ValueError, match=r"at\.ScalarType\.Undefined is not a dtype"):
            pytypes.undefined_dtype()

    @pytest.mark.parametrize("name", ["convert_dtype", "cast_dtype", "argument_dtype"])
    @pytest.mark.parametrize("value", DTYPES, ids=str)
    def test_a_dtype_is_no_number(self, pytypes, name, value):
        """Cython converts an object to an enum through its int. A dtype has none: x.scalar_type is the way."""
        with pytest.raises(TypeError, match="an integer is required"):
            getattr(pytypes, name)(value)

    @pytest.mark.parametrize("value", DTYPES, ids=str)
    def test_the_checked_way_from_any_object(self, pytypes, value):
        assert pytypes.checked_dtype(value) == pytypes.read_dtype(value)

    @pytest.mark.parametrize("wrong", [6, None, fake("dtype"), "float32"], ids=["int", "None", "fake", "str"])
    def test_the_checked_way_refuses(self, pytypes, wrong):
        with pytest.raises(TypeError, match=r"Cannot convert \w+ to torch\.dtype"):
            pytypes.checked_dtype(wrong)


class TestSizes:
    @given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=6))
    def test_from_python(self, pytypes, numbers):
        for source in (numbers, tuple(numbers), torch.Size(numbers)):
            result = pytypes.size_of(source)
            assert type(result) is torch.Size
            assert result == torch.Size(numbers)

    def test_it_is_a_tuple_to_cython(self, pytypes):
        size = torch.Size((4, 5, 6))
        assert pytypes.size_item(size, 0) == (4, 3, [4, 5, 6], torch.Size((5, 6)))
        assert pytypes.size_item(size, -1)[0] == 6
        assert pytypes.size_product(size) == 120
        for index in (3, -4):
            with pytest.raises(IndexError):
                pytypes.size_item(size, index)

    @pytest.mark.parametrize(("wrong", "error"), [(["a"], TypeError), (3, TypeError), ([2**63], OverflowError)])
    def test_other_things_are_no_sizes(self, pytypes, wrong, error):
        with pytest.raises(error):
            pytypes.size_of(wrong)


class TestOwnership:
    @pytest.mark.parametrize("name", EXAMPLES)
    def test_nothing_is_left_behind(self, pytypes, name):
        x = EXAMPLES[name]
        pytypes.repeat(name, x, 10)
        references, blocks = sys.getrefcount(x), sys.getallocatedblocks()
        pytypes.repeat(name, x, 1000)
        assert sys.getrefcount(x) == references
        assert sys.getallocatedblocks() - blocks < 100

    @pytest.mark.parametrize("name", SINGLE)
    def test_a_result_is_owned(self, pytypes, name):
        x, function = EXAMPLES[name], getattr(pytypes, ROUNDTRIPS[name])
        references = sys.getrefcount(x)
        held = [x] * 1000
        more = sys.getrefcount(x)  # unchanged if such objects are immortal
        del held
        results = [function(x) for _ in range(1000)]
        assert sys.getrefcount(x) == more
        del results
        assert sys.getrefcount(x) == references

    def test_attributes_own(self, pytypes):
        spec, stream = pytypes.Spec(), make_stream(1, 0, 1)
        references = sys.getrefcount(stream)
        spec.stream = stream
        assert sys.getrefcount(stream) == references + 1
        del spec
        assert sys.getrefcount(stream) == references


class TestNames:
    def test_the_cimported_names_are_the_imported_ones(self, pytypes):
        expected = (torch.device("cpu", 0), torch.device("meta"), torch.Size((2, 3)), torch.device("cpu"), torch.dtype)
        assert pytypes.names(torch.int8) == (*expected, torch.float32, True)
        assert pytypes.names(fake("dtype"))[-1] is False

    def test_in_a_process_that_has_imported_nothing(self, site, bare):
        code = "import pytypes, sys; assert pytypes.undefined_generator() is None; print('torch' in sys.modules)"
        assert bare(code, site).strip() == "True"
