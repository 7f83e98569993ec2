/*
 * Appends time steps to an array in C++, without exceptions. The first call creates it,
 * without any step.
 *
 *     c++ -std=c++17 cpp_append.cpp $(pkg-config --cflags --libs zarrc)
 */
#include <zarrc/zarrc.hpp>

#include <array>
#include <cstdio>

static zarr::result<void> append_steps(const char *where)
{
    const std::array<double, 6> steps{1, 2, 3, 4, 5, 6}; /* two steps of three values */
    zarr::result<zarr::array> a = zarr::create_array<double>(where, "a", {0, 3});

    if (!a)
        return a.error();
    const zarr::result<uint64_t> first = a->append(steps);
    if (!first)
        return first.error();
    std::printf("%d steps\n", static_cast<int>(a->shape()[0]));
    return a->set_attribute("units", "K");
}

int main()
{
    for (int i = 0; i < 2; i++) {
        if (const zarr::result<void> done = append_steps("run.zarr/series"); !done) {
            std::fprintf(stderr, "%s\n", done.error().what());
            return 1;
        }
    }
    return 0;
}
