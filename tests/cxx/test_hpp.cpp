/*
 * cxx/test_hpp.cpp - zarrc/zarrc.hpp: values, errors and ownership. tests/cxx/run
 * compiles it with and without exceptions, and runs it in an empty folder.
 */
#include <zarrc/zarrc.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <numeric>

static int n_failed;

static void check(bool is_true, const char *text, int line)
{
    if (!is_true) {
        std::printf("line %d: %s\n", line, text);
        n_failed++;
    }
}
#define CHECK(...) check((__VA_ARGS__), #__VA_ARGS__, __LINE__)

/* Whether a call failed with this code and a message that has this text. */
template <typename T>
static bool fails(const zarr::result<T> &r, zarr_status code, const std::string &text)
{
    const bool is_it = !r && r.error().code() == code &&
                       std::string(r.error().what()).find(text) != std::string::npos;

    if (!is_it)
        std::printf("%d: %s\n", static_cast<int>(r.error().code()), r.error().what());
    return is_it;
}

static std::vector<float> numbers(std::size_t n)
{
    std::vector<float> v(n);

    std::iota(v.begin(), v.end(), 0.5f);
    return v;
}

enum class flag : unsigned char {
};
template <> inline constexpr const char *zarr::data_type<flag> = ZARR_BOOL;

/* ---- values ---------------------------------------------------------------- */

template <typename T> static bool is_named(const char *name)
{
    return std::string(zarr::data_type<T>) == name;
}

static void test_types()
{
    CHECK(is_named<signed char>(ZARR_INT8) && is_named<unsigned char>(ZARR_UINT8));
    CHECK(is_named<short>(ZARR_INT16) && is_named<uint16_t>(ZARR_UINT16));
    CHECK(is_named<int>(ZARR_INT32) && is_named<unsigned>(ZARR_UINT32));
    CHECK(is_named<long long>(ZARR_INT64) && is_named<unsigned long long>(ZARR_UINT64));
    CHECK(is_named<int64_t>(ZARR_INT64) && is_named<std::size_t>(ZARR_UINT64));
    CHECK(is_named<float>(ZARR_FLOAT32) && is_named<double>(ZARR_FLOAT64));
    CHECK(is_named<std::complex<float>>(ZARR_COMPLEX64));
    CHECK(is_named<std::complex<double>>(ZARR_COMPLEX128));
    CHECK(is_named<flag>(ZARR_BOOL));
    CHECK(!zarr::data_type<bool> && !zarr::data_type<char> && !zarr::data_type<char16_t>);
#ifdef __SIZEOF_INT128__
    __extension__ typedef __int128 wide;
    CHECK(!zarr::data_type<wide>);
#endif
    CHECK(!zarr::data_type<long double> && !zarr::data_type<std::string>);
}

static void test_boxes()
{
    zarr::array a = zarr::create_array<float>("t.zarr/boxes", "w", {4, 5}).value();
    std::vector<double> all(20), small(3);
    std::array<float, 6> box{};
    float rows[2][5] = {};

    CHECK(bool(a.write(numbers(20))));
    CHECK(a.shape() == zarr::dims{4, 5} && a.n_items() == 20);
    CHECK(bool(a.read(all)) && all[0] == 0.5 && all[19] == 19.5);
    CHECK(bool(a.read(box, {1, 2}, {2, 3})) && box[0] == 7.5f && box[5] == 14.5f);
    CHECK(bool(a.read(rows, {2})) == false);
    CHECK(bool(a.read(rows, {2, 0})) && rows[0][0] == 10.5f && rows[1][4] == 19.5f);
    CHECK(bool(a.read(small, {}, {1, 3})) && small[2] == 2.5);
    CHECK(bool(a.write(std::array<int16_t, 2>{-1, 7}, {3, 3})));
    CHECK(bool(a.read(all)) && all[17] == 17.5 && all[18] == -1 && all[19] == 7);
    CHECK(fails(a.read(small), ZARR_ERR_INVALID, "160 bytes"));
    CHECK(fails(a.read(all, {0, 3}, {1, 3}), ZARR_ERR_INVALID, "dimension 1"));
    CHECK(fails(a.read(all, {0, 0, 0}), ZARR_ERR_INVALID, "3"));
    CHECK(fails(a.write(all, {}, {1}), ZARR_ERR_INVALID, "1"));
    CHECK(fails(a.write(std::vector<int>(20)), ZARR_ERR_INVALID, "int32"));
}

static void test_shapes()
{
    const zarr::array one = zarr::create_array<int8_t>("t.zarr/one", "w", {}).value();
    zarr::array none = zarr::create_array<int>("t.zarr/none", "w", {0, 3}).value();
    zarr::array bits = zarr::create_array<flag>("t.zarr/bits", "w", {2}).value();
    std::vector<int> empty;
    std::vector<int8_t> no_bytes;
    int8_t value[1] = {5};
    flag got[2] = {};

    CHECK(one.shape().empty() && one.n_items() == 1 && bool(one.read(value)));
    CHECK(value[0] == 0);
    CHECK(bool(none.read(empty)) && bool(none.write(empty)) && none.n_items() == 0);
    CHECK(bool(none.read_submit(empty).value().wait()));
    CHECK(fails(one.read_submit(no_bytes), ZARR_ERR_INVALID, "the buffer is empty"));
    CHECK(bool(bits.write(std::array<flag, 2>{flag{1}, flag{0}})));
    CHECK(bool(bits.read(got)) && got[0] == flag{1} && got[1] == flag{0});
}

static void test_append()
{
    zarr::array a = zarr::create_array<double>("t.zarr/steps", "a", {0, 3}).value();
    zarr::array thin = zarr::create_array<double>("t.zarr/thin", "w", {0, 0}).value();
    std::vector<double> all(9);
    const double row[3] = {7, 8, 9};

    CHECK(a.append(std::array<float, 6>{1, 2, 3, 4, 5, 6}).value() == 0);
    CHECK(a.append(row).value() == 2 && a.shape() == zarr::dims{3, 3});
    CHECK(a.append(std::vector<double>()).value() == 3);
    CHECK(bool(a.read(all)) && all[5] == 6 && all[6] == 7);
    CHECK(fails(a.append(std::vector<double>(4)), ZARR_ERR_INVALID,
                "steps: a row has 3 elements, the buffer has 4"));
    CHECK(a.append(std::vector<double>(4)).error().node() == "/steps");
    CHECK(fails(thin.append(row), ZARR_ERR_INVALID, "0 elements"));
    CHECK(zarr::create_array<double>("t.zarr/steps", "a", {0, 3})->shape()[0] == 3);
    CHECK(fails(zarr::create_array<float>("t.zarr/steps", "a", {0, 3}), ZARR_ERR_EXISTS,
                "steps"));
}

template <typename T, typename Node>
static bool keeps(Node &node, const std::string &name, const T &value)
{
    return bool(node.set_attribute(name, value)) &&
           node.template attribute<T>(name).value() == value;
}

template <typename Node> static void test_attributes(Node node)
{
    using texts = std::vector<std::string>;
    const std::string nul("a\0b", 3);

    CHECK(keeps(node, "d", 1.5) && keeps(node, "i", INT64_MIN));
    CHECK(keeps(node, "t", std::string(1000, 'x')) && keeps(node, "e", std::string()));
    CHECK(keeps(node, "ds", std::vector<double>{1, -0.5}));
    CHECK(keeps(node, "is", std::vector<int64_t>(50, 3)));
    CHECK(keeps(node, "none", std::vector<int64_t>()) && keeps(node, "nt", texts()));
    CHECK(keeps(node, "ts", texts{"one", "", "\xc3\xa9"}));
    CHECK(bool(node.set_attribute("nan", std::nan(""))));
    CHECK(std::isnan(node.template attribute<double>("nan").value()));
    CHECK(bool(node.set_attribute("u", "kelvin")) && bool(node.set_attribute("n", 3)));
    CHECK(bool(node.set_attribute("f", 0.25f)) && bool(node.set_attribute("c", 7u)));
    CHECK(bool(node.set_attribute("v", std::string_view("kelvin!", 6))));
    CHECK(node.template attribute<std::string>("u").value() == "kelvin");
    CHECK(node.template attribute<std::string>("v").value() == "kelvin");
    CHECK(node.template attribute<double>("n").value() == 3);
    CHECK(node.template attribute<std::vector<double>>("f").value()[0] == 0.25);
    CHECK(node.template attribute<texts>("u").value() == texts{"kelvin"});
    CHECK(fails(node.template attribute<double>("u"), ZARR_ERR_INVALID, "u"));
    CHECK(fails(node.template attribute<int64_t>("d"), ZARR_ERR_INVALID, "d"));
    CHECK(fails(node.template attribute<std::string>("x"), ZARR_ERR_NOT_FOUND, "x"));
    CHECK(fails(node.template attribute<texts>("x"), ZARR_ERR_NOT_FOUND, "x"));
    CHECK(
        fails(node.template attribute<std::vector<double>>("ts"), ZARR_ERR_INVALID, ""));
    CHECK(fails(node.set_attribute("t", nul), ZARR_ERR_INVALID, "NUL"));
    CHECK(fails(node.set_attribute("ts", texts{"a", nul}), ZARR_ERR_INVALID, "NUL"));
    CHECK(fails(node.set_attribute(nul, 1), ZARR_ERR_INVALID, "NUL"));
    CHECK(node.template attribute<texts>("ts").value().size() == 3);
}

static void test_groups()
{
    const zarr::result<zarr::group> made = zarr::create_group("t.zarr/g", "w");
    const zarr::group &top = made.value();
    const zarr::group inner = zarr::create_group("t.zarr/g/b", "a").value();
    std::string paths;

    CHECK(bool(zarr::create_array("t.zarr/g/b/x", "w-", ">i2", {3})));
    CHECK(bool(zarr::create_array<int>("t.zarr/g/a", "w-", {2})));
    for (const zarr_node_item *item : top.list_members(0).value())
        paths += std::string(item->path) + (item->kind == ZARR_NODE_GROUP ? "/ " : " ");
    CHECK(paths == "g/a g/b/ g/b/x ");
    CHECK(made->list_members()->size() == 2);
    CHECK(inner.open_array("x")->shape() == zarr::dims{3});
    CHECK(top.open_group("b")->open_array("x")->n_items() == 3);
    CHECK(bool(zarr::open_group("t.zarr/g", "r+")->set_attribute("title", "a group")));
    CHECK(fails(zarr::open_group("t.zarr/g")->set_attribute("n", 1), ZARR_ERR_INVALID,
                "read-only"));
    CHECK(fails(top.open_array("b"), ZARR_ERR_NOT_FOUND, "group"));
    CHECK(fails(zarr::create_group("t.zarr/g", "w-"), ZARR_ERR_EXISTS, "g"));
    CHECK(fails(top.list_members(-1), ZARR_ERR_INVALID, "max_depth"));
}

/* ---- errors ---------------------------------------------------------------- */

/* A checked array of 4 x 4 with an element of its last chunk changed in the store. */
static zarr::array make_damaged_array(const char *path, bool is_sharded)
{
    const uint64_t shape[2] = {4, 4}, chunk[2] = {2, 2}, shard[2] = {2, 4};
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;

    spec.flags = ZARR_SPEC_CHECKSUM;
    spec.ndim = 2;
    spec.shape = shape;
    spec.chunk_shape = chunk;
    spec.shard_shape = is_sharded ? shard : nullptr;
    spec.data_type = ZARR_UINT8;
    spec.codecs = "[{\"name\": \"bytes\"}]";
    zarr::array a = zarr::create_array(path, spec).value();
    a.write(std::vector<uint8_t>(16, 1)).value();
    const std::string file = std::string(path) + (is_sharded ? "/c/1/0" : "/c/1/1");
    if (std::FILE *f = std::fopen(file.c_str(), "r+b")) {
        std::fseek(f, is_sharded ? 9 : 1, SEEK_SET); /* a chunk has 4 bytes and its sum */
        std::fputc(2, f);
        std::fclose(f);
    }
    return a;
}

static void test_damage()
{
    const zarr::array plain = make_damaged_array("t.zarr/damaged", false);
    const zarr::array sharded = make_damaged_array("t.zarr/shards", true);
    const zarr::array other = zarr::create_array<int>("t.zarr/other", "w", {2}).value();
    std::vector<uint8_t> all(16);
    zarr::error e = plain.read(all).error();

    CHECK(e.code() == ZARR_ERR_CORRUPT && e.node() == "/damaged");
    CHECK(e.key() == "damaged/c/1/1" && e.block(plain) == zarr::dims{1, 1});
    CHECK(e.chunk().empty() && e.block(other).empty() && e.block(zarr::array()).empty());
    CHECK(std::string(e.what()).find("crc32c") != std::string::npos);
    e = sharded.read(all).error();
    CHECK(e.code() == ZARR_ERR_CORRUPT && e.block(sharded) == zarr::dims{1, 0});
    CHECK(e.chunk() == zarr::dims{1, 1} && e.get().operation == ZARR_OPERATION_DECODE);
    CHECK(sharded.read_submit(all)->wait().error().chunk() == zarr::dims{1, 1});
}

static void test_errors()
{
    const zarr::result<zarr::array> r = zarr::open_array("t.zarr/absent");
    const zarr::error none;

    CHECK(fails(r, ZARR_ERR_NOT_FOUND, "absent") && r.error().node() == "/absent");
    CHECK(fails(zarr::open_array("t.zarr/boxes", "w"), ZARR_ERR_INVALID, "mode"));
    CHECK(fails(zarr::open_array(std::string("t.zarr\0x", 8)), ZARR_ERR_INVALID, "NUL"));
    CHECK(fails(zarr::create_array("t.zarr/y", "w", "what", {1}), ZARR_ERR_UNSUPPORTED,
                "what"));
    CHECK(none.code() == ZARR_OK && none.what()[0] == '\0' && none.chunk().empty());
#ifdef __cpp_exceptions
    try {
        zarr::open_array("t.zarr/absent").value();
        CHECK(false);
    } catch (const std::exception &thrown) {
        CHECK(dynamic_cast<const zarr::error &>(thrown).code() == ZARR_ERR_NOT_FOUND);
        CHECK(std::string(thrown.what()) == r.error().what());
    }
#else
    int status = 0;
    const pid_t child = fork();

    if (child == 0) {
        static_cast<void>(r.value());
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGABRT);
#endif
}

/* ---- ownership ------------------------------------------------------------- */

static std::atomic<int> n_blocks; /* that the library has of count_alloc() */

static void *count_alloc(void *, size_t bytes)
{
    n_blocks++;
    return std::malloc(bytes);
}
static void *count_realloc(void *, void *block, size_t bytes)
{
    n_blocks += block == nullptr;
    return std::realloc(block, bytes);
}
static void count_free(void *, void *block)
{
    n_blocks -= block != nullptr;
    std::free(block);
}

/* All kinds of handles free what they own, also while they run. */
static void test_frees()
{
    const zarr_allocator counter = {nullptr, count_alloc, count_realloc, count_free};
    zarr_context_options opts = ZARR_CONTEXT_OPTIONS_INIT;
    constexpr std::size_t n = 1 << 18;
    std::vector<int> v(n);

    opts.allocator = &counter;
    {
        const zarr::context ctx = zarr::create_context(&opts).value();
        const zarr::group g = zarr::create_group("t.zarr/free", "w", ctx).value();
        zarr::array a = zarr::create_array<int>("t.zarr/free/a", "w", {n}, ctx).value();
        zarr::request r;

        a.write(v).value();
        for (int i = 0; i < 8; i++)
            r = a.read_submit(v, {1}, {n - 1}).value();
        CHECK(g.list_members()->size() == 1 && n_blocks > 0);
        CHECK(keeps(a, "t", std::vector<std::string>{"x", "y"}));
        a = zarr::open_array("t.zarr/free/a", "r", ctx).value();
        CHECK(fails(a.read_submit(v, {2 * n}), ZARR_ERR_INVALID, "dimension 0"));
    }
    CHECK(n_blocks == 0);
}

static void test_moves()
{
    zarr_context_options opts = ZARR_CONTEXT_OPTIONS_INIT;
    zarr::result<zarr::context> ctx = zarr::create_context(&opts);
    zarr::array a = zarr::create_array<float>("t.zarr/m", "w", {3}, ctx.value()).value();
    zarr::array b = zarr::create_array<float>("t.zarr/n", "w", {5}, ctx.value()).value();
    std::vector<float> v(5);
    double d = 0;

    CHECK(zarr_array_context(a.get()) == ctx->get());
    ctx.value() = zarr::context(); /* the arrays keep it alive */
    CHECK(bool(a.write(v)));
    b = std::move(a);
    CHECK(!a.get() && b.shape() == zarr::dims{3} && bool(b.read(v)));
    CHECK(a.shape().empty() && a.n_items() == 0);
    CHECK(fails(a.read(v), ZARR_ERR_INVALID, "empty"));
    CHECK(fails(a.read(v, {0}), ZARR_ERR_INVALID, "empty"));
    CHECK(fails(a.write(v), ZARR_ERR_INVALID, "empty"));
    CHECK(fails(a.append(v), ZARR_ERR_INVALID, "empty"));
    CHECK(fails(a.read_submit(v), ZARR_ERR_INVALID, "empty"));
    CHECK(fails(a.attribute<double>("x"), ZARR_ERR_INVALID, ""));
    CHECK(fails(a.set_attribute("x", d), ZARR_ERR_INVALID, ""));
    CHECK(fails(zarr::group().list_members(), ZARR_ERR_INVALID, "empty"));
    CHECK(fails(zarr::group().open_array("x"), ZARR_ERR_INVALID, "empty"));
    CHECK(fails(zarr::group().open_group("x"), ZARR_ERR_INVALID, "empty"));
    CHECK(zarr::members().size() == 0 &&
          zarr::members().begin() == zarr::members().end());
    CHECK(fails(zarr::request().wait(), ZARR_ERR_INVALID, "request"));
    CHECK(zarr::request().wait_for(std::chrono::seconds(1)));
    CHECK(zarr::request().progress().chunks_done == 0);
    zarr::request().cancel();
    const zarr::array owner(zarr_array_ref(b.get())); /* a C handle, counted once more */
    b = zarr::array();
    CHECK(bool(owner.read(v)));
}

static void test_background()
{
    constexpr std::size_t n = 1 << 20;
    zarr::array a = zarr::create_array<float>("t.zarr/back", "w", {n}).value();
    std::vector<float> v(n), part(4), none;
    std::vector<double> other(n);

    a.write(numbers(n)).value();
    zarr::request r = a.read_submit(v).value();
    while (!r.wait_for(std::chrono::milliseconds(10)))
        CHECK(r.progress().chunks_done <= r.progress().chunks_total);
    CHECK(bool(r.wait()) && v == numbers(n));
    CHECK(r.progress().chunks_done == r.progress().chunks_total);
    r = a.read_submit(part, {n - 4}).value(); /* frees the one before */
    CHECK(bool(r.wait()) && part[3] == v[n - 1] && r.wait_for(std::chrono::seconds(-1)));
    v.assign(n, 0);
    r = a.read_submit(v).value();
    r = a.read_submit(part, {2}, {4}).value(); /* cancels the one before, and waits */
    zarr::request moved = std::move(r);
    CHECK(!r.get() && bool(moved.wait()) && part[0] == 2.5f && part[3] == 5.5f);
    static_cast<void>(a.read_submit(v).value()); /* cancelled at once */
    moved = a.read_submit(v).value();
    moved.cancel();
    CHECK(bool(moved.wait()) || moved.wait().error().code() == ZARR_ERR_CANCELLED);
    a = zarr::array(); /* the request keeps it */
    CHECK(moved.get() != nullptr);
    a = zarr::open_array("t.zarr/back").value();
    CHECK(fails(a.read_submit(part), ZARR_ERR_INVALID, "back"));
    CHECK(fails(a.read_submit(none), ZARR_ERR_INVALID, "back"));
    CHECK(fails(a.read_submit(part, {n - 3}, {4}), ZARR_ERR_INVALID, "dimension 0"));
    CHECK(fails(a.read_submit(part, {n + 1}), ZARR_ERR_INVALID, "dimension 0"));
    CHECK(fails(a.read_submit(part, {0, 0}), ZARR_ERR_INVALID, "2"));
    CHECK(fails(a.read_submit(other), ZARR_ERR_INVALID, "float64"));
}

int main()
{
    test_types();
    test_boxes();
    test_shapes();
    test_append();
    test_attributes(zarr::create_array<int>("t.zarr/attributes", "w", {1}).value());
    test_attributes(zarr::create_group("t.zarr/attributed", "w").value());
    test_groups();
    test_damage();
    test_errors();
    test_frees();
    test_moves();
    test_background();
    return n_failed != 0;
}
