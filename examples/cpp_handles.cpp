/*
 * cpp_handles.cpp - zarrc from C++17: handles that free themselves, errors as exceptions.
 *
 *     c++ -std=c++17 cpp_handles.cpp $(pkg-config --cflags --libs zarrc)
 */
#include <zarrc/zarrc.h>

#include <cstdio>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace
{

template <auto free_handle> struct Free {
    template <typename T> void operator()(T *handle) const
    {
        free_handle(handle);
    }
};
using Context = std::unique_ptr<zarr_context, Free<zarr_context_free>>;
using Store = std::unique_ptr<zarr_store, Free<zarr_store_free>>;
using Array = std::unique_ptr<zarr_array, Free<zarr_array_free>>;
using Selection = std::unique_ptr<zarr_selection, Free<zarr_selection_free>>;

/* Calls f(arguments..., &err). */
template <typename F, typename... Arguments> void check(F f, Arguments... arguments)
{
    zarr_error err = ZARR_ERROR_INIT;

    if (f(arguments..., &err) != ZARR_OK)
        throw std::runtime_error(err.message);
}

/* The handle that f(&handle, arguments..., &err) gives. */
template <typename Handle, typename F, typename... Arguments>
Handle make(F f, Arguments... arguments)
{
    typename Handle::pointer handle = nullptr;

    check(f, &handle, arguments...);
    return Handle(handle);
}

Array create(zarr_store *store, const std::vector<uint64_t> &shape)
{
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;

    spec.flags = ZARR_SPEC_OVERWRITE;
    spec.data_type = "float64";
    spec.ndim = static_cast<int32_t>(shape.size());
    spec.shape = shape.data();
    return make<Array>(zarr_array_create, store, "temperature", &spec, nullptr);
}

zarr_tensor tensor(std::vector<double> &values, const std::vector<int64_t> &shape)
{
    zarr_tensor t = ZARR_TENSOR_INIT;

    zarr_tensor_host(&t, "float64", values.data(), values.size() * sizeof(double),
                     static_cast<int32_t>(shape.size()), shape.data());
    return t;
}

void run(const char *url)
{
    const std::vector<uint64_t> shape{3, 4};
    const std::vector<int64_t> all{3, 4}, one{3};
    std::vector<double> values(12), column(3);
    zarr_store_options opts = ZARR_STORE_OPTIONS_INIT;

    opts.flags = ZARR_STORE_CREATE;
    const auto context = make<Context>(zarr_context_create, nullptr);
    const auto store = make<Store>(zarr_store_open, context.get(), url, &opts);
    const auto array = create(store.get(), shape);

    std::iota(values.begin(), values.end(), 0.5);
    const zarr_tensor from = tensor(values, all);
    check(zarr_array_write, array.get(), nullptr, &from, nullptr);

    const auto second = make<Selection>(zarr_selection_parse, 2, shape.data(), ":, 1");
    const zarr_tensor to = tensor(column, one);
    check(zarr_array_read, array.get(), second.get(), &to, nullptr);
    std::printf("%g %g %g\n", column[0], column[1], column[2]); /* 1.5 5.5 9.5 */
}

} // namespace

int main(int argc, char **argv)
{
    try {
        run(argc > 1 ? argv[1] : "cpp_handles.zarr");
    } catch (const std::exception &problem) {
        std::fprintf(stderr, "%s\n", problem.what());
        return 1;
    }
    return 0;
}
