/*
 * cxx/must_not_compile.cpp - what zarrc/zarrc.hpp refuses when a program is compiled.
 * tests/cxx/run looks for an error with the text of each comment behind a line.
 */
#include <zarrc/zarrc.hpp>

void refuse(zarr::array &a);
void refuse(zarr::array &a)
{
    const std::vector<float> constant(3);
    std::vector<char> text(3);
    std::vector<bool> bits(3);

    a.write(constant);                        /* ignoring returned value */
    a.read(constant).value();                 /* a read changes `out` */
    a.read(text).value();                     /* no name for these elements */
    a.read(bits).value();                     /* data(std::vector<bool>&) */
    a.read_submit(std::vector<float>(3))      /* lvalue reference of type */
        .value();                             /* 'std::vector<float>&' to an rvalue */
    a.attribute<float>("x").value();          /* an attribute is a double, an int64_t */
    a.set_attribute("x", UINT64_MAX).value(); /* not every value of this type */
}
