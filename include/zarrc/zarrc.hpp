/**
 * @file
 * Zarr from C++17: handles that free themselves, and the short calls of zarrc/easy.h with
 * data types deduced from the program's own containers. Header only; link libzarrc.
 *
 * **Results.** A call that can fail returns a zarr::result. Its value() gives what the
 * call made, or throws the zarr::error. With `-fno-exceptions` value() ends the program
 * instead, so such a program tests the result first. Compile all files of a program in
 * the same way. Containers of the standard library may throw std::bad_alloc.
 *
 * **Buffers** are anything with data() and size(), such as std::vector, std::array and
 * std::span, and arrays of C. Their elements are in C order without gaps, and
 * zarr::data_type names their type. A call borrows its buffer, texts and options.
 *
 * **Handles** own what they hold. They are moved, not copied. After a move the old handle
 * is empty, and calls with it fail with ZARR_ERR_INVALID. Several threads may use an
 * array, a group or a request at once. get() lends the C handle to all other calls of the
 * library. The comments of the C calls list all errors; this file names common ones.
 *
 * Shapes and counts are in elements. Options are the structs of C; NULL: defaults.
 */
#ifndef ZARRC_ZARRC_HPP
#define ZARRC_ZARRC_HPP

#include <zarrc/zarrc.h>

#include <algorithm>
#include <chrono>
#include <complex>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace zarr
{

class array;

/** A number for each dimension, such as {20, 26}: a shape, or coordinates. */
using dims = std::vector<uint64_t>;

/* ---- errors and results ---------------------------------------------------- */

/** Why a call failed: a zarr_error. */
class error : public std::exception
{
    zarr_error why_ = ZARR_ERROR_INIT;

    std::string part(uint32_t which) const
    {
        std::string text(ZARR_ERROR_MESSAGE_BYTES, '\0');

        text.resize(zarr_error_text(&why_, which, text.data(), text.size()));
        return text;
    }

  public:
    /** No error: the code is ZARR_OK. */
    error() = default;
    /** Copies an error that a call of the C library has filled. */
    explicit error(const zarr_error &why) noexcept : why_(why) {}
    /** Returns one of ZARR_ERR_*; ZARR_OK if there is no error. */
    zarr_status code() const noexcept { return why_.code; }
    /** Returns the message, one line, borrowed from this object. */
    const char *what() const noexcept override { return why_.message; }
    /** Returns the path of the node, such as "/a/b"; "" if it is not known. */
    std::string node() const { return part(ZARR_ERROR_PATH); }
    /** Returns the key in the store, such as "a/b/c/0/1"; "" if it is not known. */
    std::string key() const { return part(ZARR_ERROR_KEY); }
    /** Returns the coordinates of the chunk of a shard in the array's grid of chunks.
     * Empty: the error is about a whole block, or about none. */
    dims chunk() const
    {
        dims at(ZARR_MAX_RANK);

        at.resize(static_cast<std::size_t>(zarr_error_chunk(&why_, at.data())));
        return at;
    }
    /** Returns the coordinates of the block in the grid of blocks of the array that the
     * call was made with. Empty: the error is about no block of it. */
    dims block(const array &failed) const;
    /** Returns all that the library told, borrowed from this object. */
    const zarr_error &get() const noexcept { return why_; }
    /** Throws the error. Without exceptions: ends the program. */
    [[noreturn]] void raise() const
    {
#ifdef __cpp_exceptions
        throw *this;
#else
        std::abort();
#endif
    }
};

/** What a call gives that makes nothing. */
struct nothing {
};

/** What a call made, or why it failed. T is void if the call makes nothing. */
template <typename T> class [[nodiscard]] result
{
    using V = std::conditional_t<std::is_void_v<T>, nothing, T>;

    zarr::error error_;
    V value_;

    void check() const
    {
        if (!*this)
            error_.raise();
    }

  public:
    /** Success if the code of `why` is ZARR_OK. */
    result(const zarr::error &why, V value = V()) : error_(why), value_(std::move(value))
    {
    }
    /** Returns whether the call succeeded. */
    explicit operator bool() const noexcept { return error_.code() == ZARR_OK; }
    /** Returns the value, or throws the error. */
    V &value() & { return check(), value_; }
    /** Returns the value, or throws the error. */
    const V &value() const & { return check(), value_; }
    /** Moves the value out of a temporary result, or throws the error. */
    V value() && { return check(), std::move(value_); }
    /** Uses the value, or throws the error. */
    V *operator->() { return &value(); }
    /** Uses the value, or throws the error. */
    const V *operator->() const { return &value(); }
    /** Returns why the call failed; the code is ZARR_OK if it succeeded. */
    const zarr::error &error() const noexcept { return error_; }
};

/* ---- data types ------------------------------------------------------------ */

/** Parts of this header that programs do not use. */
namespace detail
{

template <typename T, typename... Others>
inline constexpr bool is_one = (std::is_same_v<T, Others> || ...);

template <typename T> constexpr const char *type_name()
{
    constexpr std::size_t n = sizeof(T);

    if constexpr (is_one<T, bool, char, wchar_t, char16_t, char32_t> ||
                  (std::is_integral_v<T> && n > 8))
        return nullptr;
    else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
        return n == 1   ? ZARR_INT8
               : n == 2 ? ZARR_INT16
               : n == 4 ? ZARR_INT32
                        : ZARR_INT64;
    else if constexpr (std::is_integral_v<T>)
        return n == 1   ? ZARR_UINT8
               : n == 2 ? ZARR_UINT16
               : n == 4 ? ZARR_UINT32
                        : ZARR_UINT64;
    else if constexpr (is_one<T, float, double>)
        return n == 4 ? ZARR_FLOAT32 : ZARR_FLOAT64;
    else if constexpr (is_one<T, std::complex<float>, std::complex<double>>)
        return n == 8 ? ZARR_COMPLEX64 : ZARR_COMPLEX128;
    else
        return nullptr;
}

} // namespace detail

/**
 * The name of the data type of elements of type T; NULL: none. It knows integers, float,
 * double, and std::complex of these two. A program may name its own types, which have the
 * size of an element and can hold any bytes. A bool cannot, but this type can:
 *
 *     enum class flag : unsigned char {};
 *     template <> inline constexpr const char *zarr::data_type<flag> = ZARR_BOOL;
 */
template <typename T> inline constexpr const char *data_type = detail::type_name<T>();

/* ---- what the classes below share ------------------------------------------ */

namespace detail
{

struct deleter {
    void operator()(zarr_context *p) const { zarr_context_free(p); }
    void operator()(zarr_array *p) const { zarr_array_free(p); }
    void operator()(zarr_group *p) const { zarr_group_free(p); }
    void operator()(zarr_members *p) const { zarr_members_free(p); }
    void operator()(zarr_texts *p) const { zarr_texts_free(p); }
    void operator()(zarr_selection *p) const { zarr_selection_free(p); }
    void operator()(zarr_request *p) const { zarr_request_free(p); }
};
template <typename C> using owned = std::unique_ptr<C, deleter>;

/* A C handle that must not be null. */
template <typename C> struct required {
    C *handle;
};

/* An argument of a call of the C library. Texts and numbers become pointers; numbers that
 * are not given become NULL. */
struct argument {
    static const char *convert(const std::string &text) { return text.c_str(); }
    static const uint64_t *convert(const dims &d) { return d.empty() ? nullptr : &d[0]; }
    template <typename C> static C *convert(const required<C> &r) { return r.handle; }
    template <typename T> static T convert(const T &value) { return value; }

    static const char *find_problem(const std::string &text)
    {
        return text.find('\0') == text.npos ? nullptr : "a text has a NUL inside";
    }
    template <typename C> static const char *find_problem(const required<C> &r)
    {
        return r.handle ? nullptr : "the handle is empty";
    }
    template <typename T> static const char *find_problem(const T &) { return nullptr; }
};

/* An error that this header finds. `node` may be "". */
inline error invalid(const std::string &problem, const std::string &node = "")
{
    zarr_error why = ZARR_ERROR_INIT;
    const std::string text = node.empty() ? problem : node + ": " + problem;

    why.code = ZARR_ERR_INVALID;
    why.part[ZARR_ERROR_PATH].bytes = static_cast<uint16_t>(
        std::min(node.size(), text.copy(why.message, sizeof why.message - 1)));
    return error(why);
}

/* Calls f(arguments..., &err). */
template <typename F, typename... Arguments>
error call(F f, const Arguments &...arguments)
{
    zarr_error why = ZARR_ERROR_INIT;
    const char *problem = nullptr;

    ((problem = problem ? problem : argument::find_problem(arguments)), ...);
    if (problem)
        return invalid(problem);
    return f(argument::convert(arguments)..., &why) == ZARR_OK ? error() : error(why);
}

/* The handle that f(&handle, arguments..., &err) makes. */
template <typename Handle, typename F, typename... Arguments>
result<Handle> make(F f, const Arguments &...arguments)
{
    std::remove_pointer_t<decltype(Handle().get())> *made = nullptr;
    const error why = call(f, &made, arguments...);

    return {why, Handle(made)};
}

/* The memory of a buffer. */
struct memory {
    const char *type;
    void *data;
    uint64_t bytes, n_items;
};
template <typename Buffer>
using element = std::remove_all_extents_t<
    std::remove_pointer_t<decltype(std::data(std::declval<Buffer &>()))>>;

template <typename Buffer> memory describe(Buffer &buffer)
{
    using T = element<Buffer>;
    constexpr const char *type = data_type<std::remove_cv_t<T>>;
    const uint64_t bytes = std::size(buffer) * sizeof *std::data(buffer);

    static_assert(type != nullptr, "zarr::data_type has no name for these elements");
    return {type, const_cast<void *>(static_cast<const void *>(std::data(buffer))), bytes,
            bytes / sizeof(T)};
}

/* The calls for attributes of the node C whose value is a T. */
template <typename C, typename T> struct attribute_calls {
    static_assert(!sizeof(T), "an attribute is a double, an int64_t, a std::string, or a "
                              "std::vector of one of these");
};
#define ZARR_ATTRIBUTE_CALLS(noun, type, word)                                           \
    template <> struct attribute_calls<noun, type> {                                     \
        static constexpr auto get = noun##_attribute_get_##word;                         \
        static constexpr auto set = noun##_attribute_set_##word;                         \
    };                                                                                   \
    template <> struct attribute_calls<noun, std::vector<type>> {                        \
        static constexpr auto get = noun##_attribute_get_##word##s;                      \
        static constexpr auto set = noun##_attribute_set_##word##s;                      \
    };
ZARR_ATTRIBUTE_CALLS(zarr_array, double, double)
ZARR_ATTRIBUTE_CALLS(zarr_array, int64_t, int64)
ZARR_ATTRIBUTE_CALLS(zarr_array, std::string, text)
ZARR_ATTRIBUTE_CALLS(zarr_group, double, double)
ZARR_ATTRIBUTE_CALLS(zarr_group, int64_t, int64)
ZARR_ATTRIBUTE_CALLS(zarr_group, std::string, text)
#undef ZARR_ATTRIBUTE_CALLS

/** Owns a handle of the C library. */
template <typename C> class handle
{
    owned<C> handle_;

  protected:
    /* The C handle, for a call that needs one. */
    required<C> self() const { return {get()}; }

  public:
    /** An empty handle. */
    handle() = default;
    /** Takes a C handle over. */
    explicit handle(C *moved) noexcept : handle_(moved) {}
    /** Lends the C handle; NULL if this one is empty. */
    C *get() const noexcept { return handle_.get(); }
};

/** An array or a group: a node with attributes. */
template <typename C> class node : public handle<C>
{
    template <typename T> using calls = attribute_calls<C, T>;

    /* A text or numbers. N: the type of lengths; end: 1 if a NUL follows. */
    template <typename T, typename N>
    result<T> fetch(const std::string &name, N end) const
    {
        T value;
        N n = 0;
        error why;

        do { /* without memory, the call tells the length */
            value.resize(n + end);
            why = call(calls<T>::get, this->self(), name, value.data(), value.size(), &n);
        } while ((why.code() == ZARR_OK || why.code() == ZARR_ERR_LIMIT) &&
                 n + end > value.size());
        value.resize(why.code() == ZARR_OK ? n : 0);
        return {why, std::move(value)};
    }

  public:
    using handle<C>::handle;

    /**
     * Gets an attribute.
     * @tparam T double, int64_t, std::string, or a std::vector of one of these
     * @param name name of the attribute
     * @return the value; ZARR_ERR_NOT_FOUND: there is no such attribute;
     * ZARR_ERR_INVALID: it has another type, or a number is not exact in T
     */
    template <typename T> result<T> attribute(const std::string &name) const
    {
        if constexpr (std::is_arithmetic_v<T>) {
            T value = 0;
            const error why = call(calls<T>::get, this->self(), name, &value);

            return {why, value};
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
            zarr_texts *list = nullptr;
            const error why = call(calls<T>::get, &list, this->self(), name);
            const owned<zarr_texts> owner(list);

            return {why, list ? T(list->text, list->text + list->n) : T()};
        } else if constexpr (std::is_same_v<T, std::string>) {
            return fetch<T, std::size_t>(name, 1);
        } else {
            return fetch<T, uint64_t>(name, 0);
        }
    }
    /**
     * Sets an attribute, in the store as well.
     * @param name name of the attribute
     * @param value a number, a text, or a std::vector of double, int64_t or std::string
     * @return ZARR_ERR_INVALID: the store is read-only, or a text is not UTF-8 or has a
     * NUL inside
     */
    template <typename T>
    result<void> set_attribute(const std::string &name, const T &value)
    {
        if constexpr (std::is_convertible_v<const T &, std::string_view>) {
            return call(calls<std::string>::set, this->self(), name, std::string(value));
        } else if constexpr (std::is_arithmetic_v<T>) {
            using number = std::conditional_t<std::is_integral_v<T>, int64_t, double>;

            static_assert(type_name<T>() && (std::is_signed_v<T> || sizeof(T) < 8),
                          "not every value of this type is an int64_t or a double");
            return call(calls<number>::set, this->self(), name, number(value));
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
            std::vector<const char *> texts;

            for (const std::string &text : value) {
                if (const char *problem = argument::find_problem(text))
                    return invalid(problem);
                texts.push_back(text.c_str());
            }
            return call(calls<T>::set, this->self(), name, texts.data(), texts.size());
        } else {
            return call(calls<T>::set, this->self(), name, value.data(), value.size());
        }
    }
};

} // namespace detail

/* ---- handles --------------------------------------------------------------- */

/** What calls share: threads, memory, limits and plug-ins. An empty one means
 * the default context of the process. */
using context = detail::handle<zarr_context>;

/** A read in the background. It keeps its array alive. The destructor cancels it if it
 * still runs, and waits for its end. Afterwards the buffer is free. */
class request
{
    friend class array;

    struct state {
        dims shape;
        zarr_tensor tensor;
        detail::owned<zarr_selection> selection;
        detail::owned<zarr_request> running; /* freed first: it uses the others */
    };
    std::unique_ptr<state> state_;

    explicit request(std::unique_ptr<state> s) : state_(std::move(s)) {}

  public:
    /** An empty handle. */
    request() = default;
    /** Lends the C handle; NULL if this one is empty. */
    zarr_request *get() const noexcept
    {
        return state_ ? state_->running.get() : nullptr;
    }
    /** Waits for the end of the read.
     * @return errors as of array::read(); ZARR_ERR_CANCELLED: it was cancelled */
    result<void> wait() const
    {
        return detail::call(zarr_request_wait, get(), ZARR_WAIT_FOREVER, nullptr);
    }
    /** Waits at most for a time.
     * @return whether the read has ended; then wait() returns at once */
    bool wait_for(std::chrono::nanoseconds most) const
    {
        const uint64_t ns = static_cast<uint64_t>(std::max(most, most.zero()).count());
        int done = 0;

        return detail::call(zarr_request_wait, get(), ns, &done).code() != ZARR_OK ||
               done;
    }
    /** Returns how far the read is: `chunks_done` of `chunks_total`. */
    zarr_stats progress() const
    {
        zarr_stats so_far = ZARR_STATS_INIT;

        if (get())
            zarr_request_progress(get(), &so_far);
        return so_far;
    }
    /** Asks the read to stop. The call returns at once. */
    void cancel() const { zarr_request_cancel(get()); }
};

/** An open array. */
class array : public detail::node<zarr_array>
{
    friend class error;

    /* Start and count, if they are given, have a number for each dimension. */
    error check(const dims &start, const dims &count) const
    {
        error why;

        for (const dims *given : {&start, &count})
            if (!given->empty() && why.code() == ZARR_OK)
                why = detail::call(zarr_array_check_ndim, self(),
                                   static_cast<int32_t>(given->size()));
        return why;
    }

    template <typename F>
    result<void> access(F f, const detail::memory &m, const dims &start,
                        const dims &count, const zarr_io_options *opts) const
    {
        const error why = check(start, count);

        if (why.code() != ZARR_OK)
            return why;
        return detail::call(f, self(), start, count, m.type, m.data, m.bytes, opts);
    }

    result<request> submit(const detail::memory &m, const dims &start, const dims &count,
                           const zarr_io_options *opts) const
    {
        const dims all = shape(), first = start.empty() ? dims(all.size()) : start;
        const int32_t ndim = static_cast<int32_t>(all.size());
        auto s = std::make_unique<request::state>();
        dims n = count.empty() ? all : count;
        zarr_selection *selection = nullptr;
        zarr_request *running = nullptr;
        error why = check(start, count);

        if (why.code() != ZARR_OK)
            return why;
        for (std::size_t d = 0; d < all.size() && count.empty(); d++)
            n[d] -= std::min(first[d], n[d]);
        if (get() && m.bytes == 0 && std::count(n.begin(), n.end(), uint64_t(0)) == 0)
            return detail::invalid("the buffer is empty", zarr_array_path(get()));
        s->shape.assign(n.begin(), n.end());
        /* 0 bytes would mean that their number is not known */
        zarr_tensor_host(&s->tensor, m.type, m.bytes ? m.data : s.get(),
                         std::max(m.bytes, uint64_t(1)), ndim, s->shape.data());
        if (!start.empty() || !count.empty())
            why = detail::call(zarr_selection_box, &selection, ndim, all, first, n);
        s->selection.reset(selection);
        if (why.code() == ZARR_OK)
            why = detail::call(zarr_array_read_submit, &running, self(), selection,
                               &s->tensor, opts);
        s->running.reset(running);
        return {why, request(std::move(s))};
    }

  public:
    using node::node;

    /** Returns the shape. */
    dims shape() const
    {
        dims lengths(ZARR_MAX_RANK);

        if (get())
            zarr_array_copy_shapes(get(), lengths.data(), nullptr, nullptr);
        lengths.resize(get() ? static_cast<std::size_t>(zarr_array_ndim(get())) : 0);
        return lengths;
    }
    /** Returns how many elements there are; UINT64_MAX if there are more than that. */
    uint64_t n_items() const { return zarr_array_n_items(get()); }

    /**
     * Reads a box; without `start` and `count`, the whole array. Elements of another type
     * are converted if every value is exact in the type of the buffer, as
     * zarr_array_read_box() tells.
     * @param out receives the elements, and may be larger. After a failure its content is
     * undefined
     * @param start first index along each dimension; not given: 0
     * @param count how many elements along each dimension; not given: all from `start` on
     * @param opts as for zarr_array_read()
     * @return ZARR_ERR_INVALID: the box reaches beyond the array, the buffer is too
     * small, or the types do not fit; ZARR_ERR_CORRUPT: a chunk is damaged;
     * ZARR_ERR_IO: the store failed
     */
    template <typename Buffer>
    result<void> read(Buffer &&out, const dims &start = {}, const dims &count = {},
                      const zarr_io_options *opts = nullptr) const
    {
        static_assert(!std::is_const_v<detail::element<Buffer>>, "a read changes `out`");
        return access(zarr_array_read_box_with, detail::describe(out), start, count,
                      opts);
    }
    /**
     * Writes a box.
     * @param data the elements; may be larger
     * @param start,count as for read()
     * @param opts as for zarr_array_write()
     * @return errors as of read(); ZARR_ERR_INVALID: the store is read-only
     */
    template <typename Buffer>
    result<void> write(const Buffer &data, const dims &start = {}, const dims &count = {},
                       const zarr_io_options *opts = nullptr)
    {
        return access(zarr_array_write_box_with, detail::describe(data), start, count,
                      opts);
    }
    /**
     * Makes the array longer along dimension 0, and writes rows there. A row is all
     * elements with one index along dimension 0.
     * @param rows one row or several; the size of the buffer tells how many
     * @param opts as for zarr_array_append()
     * @return the index of the first new row; errors as of write(); ZARR_ERR_INVALID: the
     * buffer ends inside of a row
     */
    template <typename Buffer>
    result<uint64_t> append(const Buffer &rows, const zarr_io_options *opts = nullptr)
    {
        const detail::memory m = detail::describe(rows);
        const dims lengths = shape();
        uint64_t row = 1, first = 0;

        for (std::size_t d = 1; d < lengths.size(); d++)
            row *= lengths[d];
        if (row == 0 ? m.n_items > 0 : m.n_items % row > 0)
            return detail::invalid("a row has " + std::to_string(row) +
                                       " elements, the buffer has " +
                                       std::to_string(m.n_items),
                                   zarr_array_path(get()));
        const error why =
            detail::call(zarr_array_append_rows_with, self(), row ? m.n_items / row : 0,
                         m.type, m.data, m.bytes, &first, opts);
        return {why, first};
    }
    /**
     * Starts a read in the background. Elements are not converted.
     * @param out,start,count as for read(). The buffer is borrowed until the read has
     * ended, and so is what `opts` points to
     * @param opts as for zarr_array_read_submit()
     * @return the request, which tells of errors of chunks; ZARR_ERR_INVALID: an argument
     * is wrong
     */
    template <typename Buffer>
    result<request> read_submit(Buffer &out, const dims &start = {},
                                const dims &count = {},
                                const zarr_io_options *opts = nullptr) const
    {
        static_assert(!std::is_const_v<detail::element<Buffer>>, "a read changes `out`");
        return submit(detail::describe(out), start, count, opts);
    }
};

inline dims error::block(const array &failed) const
{
    dims at = failed.shape();

    if (detail::call(zarr_array_block_of_key, failed.self(), key(), at.data()).code() !=
        ZARR_OK)
        at.clear();
    return at;
}

/** The nodes below a group, as they were when they were listed: a range of pointers to
 * zarr_node_item, parents before their children, siblings by name. */
class members : public detail::handle<zarr_members>
{
  public:
    using handle::handle;
    /** Returns how many nodes there are. */
    std::size_t size() const { return get() ? static_cast<std::size_t>(get()->n) : 0; }
    /** Returns the first node, borrowed from this object. */
    const zarr_node_item *const *begin() const { return get() ? get()->node : nullptr; }
    /** Returns the end of the range. */
    const zarr_node_item *const *end() const { return begin() + size(); }
};

/** An open group. */
class group : public detail::node<zarr_group>
{
  public:
    using node::node;

    /**
     * Lists the nodes below the group. The list is a copy: the program may change nodes
     * while it walks through it.
     * @param max_depth 1: direct children only; 0: all nodes below the group
     * @param opts as for zarr_group_walk()
     * @return the list; ZARR_ERR_UNSUPPORTED: the store cannot list
     */
    result<members> list_members(int32_t max_depth = 1,
                                 const zarr_list_options *opts = nullptr) const
    {
        return detail::make<members>(zarr_group_list_members_with, self(), max_depth,
                                     opts);
    }
    /** Opens the array at a path below the group, as zarr_group_open_array() does. */
    result<array> open_array(const std::string &path,
                             const zarr_array_open_options *opts = nullptr) const
    {
        return detail::make<array>(zarr_group_open_array, self(), path, opts);
    }
    /** Opens the group at a path below the group, as zarr_group_open_group() does. */
    result<group> open_group(const std::string &path,
                             const zarr_group_open_options *opts = nullptr) const
    {
        return detail::make<group>(zarr_group_open_group, self(), path, opts);
    }
};

/* ---- open and create ------------------------------------------------------- */

/** Makes a context, as zarr_context_create() does. */
inline result<context> create_context(const zarr_context_options *opts = nullptr)
{
    return detail::make<context>(zarr_context_create, opts);
}
/**
 * Opens an array.
 * @param location where it is, such as "run.zarr/temp"
 * @param mode "r": the store is read-only; "r+": read and write
 * @param ctx the array keeps it alive
 * @param opts as for zarr_open_array_with()
 * @return the array; ZARR_ERR_NOT_FOUND: there is none; ZARR_ERR_CORRUPT: its metadata is
 * damaged; ZARR_ERR_UNSUPPORTED: this build lacks something that the metadata names
 */
inline result<array> open_array(const std::string &location,
                                const std::string &mode = "r", const context &ctx = {},
                                const zarr_open_options *opts = nullptr)
{
    return detail::make<array>(zarr_open_array_with, ctx.get(), location, mode, opts);
}
/** Opens a group in the same way. */
inline result<group> open_group(const std::string &location,
                                const std::string &mode = "r", const context &ctx = {},
                                const zarr_open_options *opts = nullptr)
{
    return detail::make<group>(zarr_open_group_with, ctx.get(), location, mode, opts);
}
/**
 * Creates an array, and parent groups that are missing.
 * @param location,ctx as for open_array()
 * @param mode "w-": fail if there is a node; "w": delete it first; "a": open an array
 * that has this data type and rank, and no shorter dimension
 * @param type name of the data type, such as ZARR_FLOAT32
 * @param shape the shape; {}: a single element
 * @return the array; ZARR_ERR_EXISTS: the mode does not allow what is there;
 * ZARR_ERR_INVALID: an argument is wrong
 */
inline result<array> create_array(const std::string &location, const std::string &mode,
                                  const std::string &type, const dims &shape,
                                  const context &ctx = {})
{
    return detail::make<array>(zarr_create_array, ctx.get(), location, mode, type,
                               static_cast<int32_t>(shape.size()), shape);
}
/** Creates an array with elements of type T. */
template <typename T>
result<array> create_array(const std::string &location, const std::string &mode,
                           const dims &shape, const context &ctx = {})
{
    static_assert(data_type<T> != nullptr, "zarr::data_type has no name for this type");
    return create_array(location, mode, data_type<T>, shape, ctx);
}
/** Creates an array that `spec` describes. Its flags take the place of a mode. */
inline result<array> create_array(const std::string &location,
                                  const zarr_array_spec &spec, const context &ctx = {},
                                  const zarr_open_options *opts = nullptr)
{
    return detail::make<array>(zarr_create_array_with, ctx.get(), location, &spec, opts);
}
/** Creates a group; the modes are those of create_array(), and "a" opens any group. */
inline result<group> create_group(const std::string &location, const std::string &mode,
                                  const context &ctx = {})
{
    return detail::make<group>(zarr_create_group, ctx.get(), location, mode);
}
/** Creates a group that `spec` describes. Its flags take the place of a mode. */
inline result<group> create_group(const std::string &location,
                                  const zarr_group_spec &spec, const context &ctx = {},
                                  const zarr_open_options *opts = nullptr)
{
    return detail::make<group>(zarr_create_group_with, ctx.get(), location, &spec, opts);
}

} // namespace zarr

#endif
