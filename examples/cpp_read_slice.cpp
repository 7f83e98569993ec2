/*
 * Reads a part of an array in C++: three rows of four columns, as doubles.
 *
 *     c++ -std=c++17 cpp_read_slice.cpp $(pkg-config --cflags --libs zarrc)
 */
#include <zarrc/zarrc.hpp>

#include <cstdio>
#include <numeric>
#include <vector>

static void read_slice(const char *where)
{
    const zarr::array a = zarr::open_array(where).value();
    std::vector<double> part(3 * 4);

    a.read(part, {20, 26}, {3, 4}).value();
    std::printf("%g to %g\n", part.front(), part.back());
}

int main()
try {
    std::vector<float> data(40 * 30);

    std::iota(data.begin(), data.end(), 0.0f);
    zarr::create_array<float>("run.zarr/temp", "w", {40, 30})->write(data).value();
    read_slice("run.zarr/temp");
    return 0;
} catch (const zarr::error &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
