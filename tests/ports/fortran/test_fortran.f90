! The module zarrc: values, order of dimensions, sections, attributes, members and errors. It
! writes into the working folder. With the argument "stop" it fails without `stat`.
module checks
    use, intrinsic :: iso_fortran_env, only: error_unit
    use zarrc
    implicit none
    integer :: stat = 0
    character(len=500) :: errmsg = ""
contains
    subroutine check(is_right, what)
        logical, intent(in) :: is_right
        character(len=*), intent(in) :: what

        if (is_right) return
        write (error_unit, *) "wrong: ", what, ": ", stat, trim(errmsg)
        error stop
    end subroutine

    ! The last call failed with a status and a message.
    subroutine check_error(expected, words)
        integer, intent(in) :: expected
        character(len=*), intent(in) :: words

        call check(stat == expected .and. index(errmsg, words) > 0, "error: "//words)
    end subroutine

    ! What a program may do: pass on its optional arguments.
    subroutine open_for_caller(array, location, error, message)
        type(zarr_array), intent(inout) :: array
        character(len=*), intent(in) :: location
        integer, intent(out), optional :: error
        character(len=*), intent(inout), optional :: message

        call zarr_open(array, location, stat=error, errmsg=message)
    end subroutine

    subroutine write_assumed_size(array, x)
        type(zarr_array), intent(in) :: array
        real, intent(in) :: x(*)

        call zarr_write(array, x, stat=stat, errmsg=errmsg)
        call check_error(zarr_err_invalid, "assumed size")
        call zarr_write(array, x(1:6), count=[3, 2], stat=stat, errmsg=errmsg)
        call check_error(zarr_err_invalid, "data has the shape (6), count is (3,2)")
    end subroutine
end module

program test_fortran
    use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
    use checks
    implicit none
    character(len=4) :: argument

    call get_command_argument(1, argument)
    if (argument == "stop") call stop_without_stat()
    call test_kinds()
    call test_boxes()
    call test_sections()
    call test_append()
    call test_modes()
    call test_attributes()
    call test_members()
    call test_errors()
    call test_text_errors()
contains

    subroutine stop_without_stat()
        type(zarr_array) :: a

        call zarr_open(a, "nothing.zarr/here", errmsg=errmsg)
    end subroutine

    subroutine test_kinds()
        type(zarr_array) :: a
        integer :: i
        real(real64) :: as_double(3, 2)
        integer(int8) :: i1(3, 2) = reshape([(int(-i, int8), i=1, 6)], [3, 2]), j1(3, 2)
        integer(int16) :: i2(3, 2) = reshape([(int(-300*i, int16), i=1, 6)], [3, 2]), j2(3, 2)
        integer(int32) :: i4(3, 2) = reshape([(-70000*i, i=1, 6)], [3, 2]), j4(3, 2)
        integer(int64) :: i8(3, 2) = reshape([(2_int64**40*i, i=1, 6)], [3, 2]), j8(3, 2)
        real(real32) :: r4(3, 2) = reshape([(0.5*i, i=1, 6)], [3, 2]), s4(3, 2)
        real(real64) :: r8(3, 2) = reshape([(0.1d0*i, i=1, 6)], [3, 2]), s8(3, 2)
        complex(real32) :: c4(3, 2), d4(3, 2)
        complex(real64) :: c8(3, 2), d8(3, 2), c

        c4 = cmplx(r4, -r4, real32)
        c8 = cmplx(r8, -r8, real64)
        call zarr_create(a, "values.zarr/int8", "int8", [3, 2])
        call zarr_write(a, i1)
        call zarr_read(a, j1)
        call check(all(j1 == i1), "int8")
        call zarr_close(a)
        call zarr_create(a, "values.zarr/int16", "int16", [3, 2])
        call zarr_write(a, i2)
        call zarr_read(a, j2)
        call check(all(j2 == i2), "int16")
        call zarr_read(a, as_double)
        call check(all(int(as_double) == i2), "int16 as real64")
        call zarr_close(a)
        call zarr_create(a, "values.zarr/int32", "int32", [3, 2])
        call zarr_write(a, i4)
        call zarr_read(a, j4)
        call check(all(j4 == i4), "int32")
        call zarr_close(a)
        call zarr_create(a, "values.zarr/int64", "int64", [3, 2])
        call zarr_write(a, i8)
        call zarr_read(a, j8)
        call check(all(j8 == i8), "int64")
        call zarr_close(a)
        call zarr_create(a, "values.zarr/float32", "float32", [3, 2])
        call zarr_write(a, r4)
        call zarr_read(a, s4)
        call check(all(abs(s4 - r4) <= 0), "real32")
        call zarr_close(a)
        call zarr_create(a, "values.zarr/float64", "float64", [3, 2])
        call zarr_write(a, r8)
        call zarr_read(a, s8)
        call check(all(abs(s8 - r8) <= 0), "real64")
        call zarr_close(a)
        call zarr_create(a, "values.zarr/uint8", "uint8", [3, 2])
        call zarr_read(a, j2)
        call check(all(j2 == 0), "uint8 as int16")
        call zarr_write(a, i1, stat=stat, errmsg=errmsg)
        call check_error(zarr_err_invalid, "int8 is not converted to uint8")
        call zarr_close(a)
        call zarr_create(a, "values.zarr/complex64", "complex64", [3, 2])
        call zarr_write(a, c4)
        call zarr_read(a, d4)
        call check(all(abs(d4 - c4) <= 0), "complex32")
        call zarr_close(a)
        call zarr_create(a, "values.zarr/complex128", "complex128", [3, 2])
        call zarr_write(a, c8*2)
        call zarr_read(a, d8)
        call check(all(abs(d8 - c8*2) <= 0), "complex64")
        call zarr_read(a, c, start=[2, 2], count=[1, 1])
        call check(abs(c - c8(2, 2)*2) <= 0, "one element")
        call zarr_close(a)
        call zarr_create(a, "values.zarr/scalar", "float32", [integer ::])
        call zarr_write(a, 7.5_real32)
        call zarr_read(a, s4(1, 1))
        call check(abs(s4(1, 1) - 7.5) <= 0, "no dimensions")
        call zarr_close(a)
    end subroutine

    ! x(i,j,k) = i + 10 j + 100 k
    subroutine test_boxes()
        type(zarr_array) :: a
        integer(int64), allocatable :: shape(:)
        integer :: x(4, 3, 2), y(4, 3, 2), i, j, k, part(2, 2, 1), plane(4, 2), line(3)

        do concurrent (i=1:4, j=1:3, k=1:2)
            x(i, j, k) = i + 10*j + 100*k
        end do
        call zarr_create(a, "values.zarr/box  ", "int32 ", int([4, 3, 2], int64), &
                         chunks=[2_int64, 3_int64, 1_int64], shards=[4, 3, 2], &
                         dimensions=["lon ", "lat ", "time"])
        call zarr_get_shape(a, shape)
        call zarr_get_shape(a, shape)
        call check(all(shape == [4, 3, 2]), "shape")
        call zarr_write(a, x)
        call zarr_read(a, part, start=[2, 2, 2])
        call check(all(part == x(2:3, 2:3, 2:2)), "start")
        call zarr_read(a, y, count=[4, 3, 2])
        call check(all(y == x), "count")
        call zarr_read(a, plane, start=[1, 3, 1], count=[4, 1, 2])
        call check(all(plane == x(:, 3, :)), "a plane")
        call zarr_read(a, line, start=[4, 1, 2], count=[1, 3, 1])
        call check(all(line == x(4, :, 2)), "a line")
        call zarr_write(a, -plane, start=[1, 3, 1], count=[4, 1, 2])
        call zarr_write(a, -1, start=[1, 1, 1], count=[1, 1, 1])
        x(:, 3, :) = -x(:, 3, :)
        x(1, 1, 1) = -1
        call zarr_read(a, y)
        call check(all(y == x), "written plane")
        call zarr_close(a)
        call zarr_close(a)
    end subroutine

    subroutine test_sections()
        type(zarr_array) :: a
        real :: x(8, 9), y(8, 9), whole(4, 3), all_others
        integer :: i
        real, pointer :: p(:, :)
        real, target :: t(4, 3)

        x = reshape([(real(i), i=1, 72)], [8, 9])
        call zarr_create(a, "values.zarr/section", "float32", [4, 3])
        call zarr_write(a, x(::2, 1::3))
        call zarr_read(a, whole)
        call check(all(abs(whole - x(::2, 1::3)) <= 0), "written section")
        y = -1
        call zarr_read(a, y(2::2, 9:1:-3))
        call check(all(abs(y(2::2, 9:1:-3) - whole) <= 0), "read section")
        all_others = sum(y) - sum(whole)
        call check(abs(all_others + 72 - 12) <= 0, "elements outside of the section")
        p => t
        call zarr_read(a, p)
        call check(all(abs(t - whole) <= 0), "pointer")
        call zarr_close(a)
    end subroutine

    subroutine test_append()
        type(zarr_array) :: a, line
        integer(int64), allocatable :: shape(:)
        real :: step(2, 3), steps(2, 3, 5), all_steps(2, 3, 7)

        call random_number(step)
        call random_number(steps)
        call zarr_create(a, "values.zarr/steps", "float32", [2, 3, 0], chunks=[2, 3, 4])
        call zarr_append(a, step)
        call zarr_append(a, steps)
        call zarr_append(a, transpose(reshape(step, [3, 2])))
        call zarr_append(a, steps(:, :, 1:0))
        call zarr_get_shape(a, shape)
        call check(all(shape == [2, 3, 7]), "shape after appends")
        call zarr_read(a, all_steps)
        call check(all(abs(all_steps(:, :, 1) - step) <= 0), "one step")
        call check(all(abs(all_steps(:, :, 2:6) - steps) <= 0), "five steps")
        call zarr_append(a, transpose(step), stat, errmsg)
        call check_error(zarr_err_invalid, "data has the shape (3,2)")
        call zarr_append(a, step(:, 1), stat, errmsg)
        call check_error(zarr_err_invalid, "the array (2,3,7)")
        call zarr_close(a)
        call zarr_create(line, "values.zarr/line", "float64", [0])
        call zarr_append(line, 1.5d0)
        call zarr_append(line, [2.5, 3.5])
        call zarr_get_shape(line, shape)
        call check(size(shape) == 1 .and. shape(1) == 3, "shape of a line")
        call zarr_close(line)
    end subroutine

    subroutine test_modes()
        type(zarr_array) :: a
        integer :: x(2)

        call zarr_create(a, "values.zarr/modes", "int32", [2], chunks=[2], mode="a ")
        call zarr_write(a, [1, 2])
        call zarr_close(a)
        call zarr_create(a, "values.zarr/modes", "int32", [2], mode="a")
        call zarr_read(a, x)
        call check(all(x == [1, 2]), "mode a keeps the elements")
        call zarr_close(a)
        call zarr_create(a, "values.zarr/modes", "int16", [2], chunks=[2], mode="a", stat=stat, &
                         errmsg=errmsg)
        call check_error(zarr_err_exists, "int32")
        call zarr_create(a, "values.zarr/modes", "int32", [2], stat=stat, errmsg=errmsg)
        call check_error(zarr_err_exists, "modes")
        call zarr_create(a, "values.zarr/modes", "int32", [2], mode="w", chunks=[1])
        call zarr_read(a, x)
        call check(all(x == 0), "mode w removes the elements")
        call zarr_close(a)
        call zarr_create(a, "values.zarr/modes", "int32", [2], mode="r", stat=stat, errmsg=errmsg)
        call check_error(zarr_err_invalid, "mode")
        call zarr_open(a, "values.zarr/modes")
        call zarr_write(a, x, stat=stat, errmsg=errmsg)
        call check_error(zarr_err_invalid, "read")
        call zarr_open(a, "values.zarr/modes", stat=stat, errmsg=errmsg)
        call check_error(zarr_err_invalid, "call zarr_close() first")
        call zarr_close(a)
        call zarr_open(a, "values.zarr/modes", "r+")
        call zarr_write(a, [5, 6])
        call zarr_close(a)
    end subroutine

    subroutine test_attributes()
        type(zarr_array) :: a
        type(zarr_group) :: g
        integer :: i, n, few(2), many(5)
        integer(int64) :: long
        real(real64) :: r, list(3)
        real :: single
        character(len=8) :: text, texts(3)

        call zarr_open(a, "values.zarr/float64", "r+")
        call zarr_set_attribute(a, "scale", 0.25d0)
        call zarr_set_attribute(a, "count ", 2_int64**60)
        call zarr_set_attribute(a, "year", 2026)
        call zarr_set_attribute(a, "units", "m s-1   ")
        call zarr_set_attribute(a, "range", [0.1d0, 0.2d0, 0.3d0])
        call zarr_set_attribute(a, "three", [1, 2, 3])
        call zarr_set_attribute(a, "names", ["u  ", "vee", "w  "])
        call zarr_set_attribute(a, "empty", [integer ::])
        call zarr_set_attribute(a, "half", 0.5)
        call zarr_close(a)

        call zarr_open(a, "values.zarr/float64")
        call zarr_get_attribute(a, "scale", r)
        call check(abs(r - 0.25d0) <= 0, "real attribute")
        call zarr_get_attribute(a, "half", single)
        call check(abs(single - 0.5) <= 0, "attribute of real32")
        call zarr_get_attribute(a, "count", long)
        call check(long == 2_int64**60, "integer attribute")
        call zarr_get_attribute(a, "year  ", i)
        call check(i == 2026, "attribute of int32")
        text = "????????"
        call zarr_get_attribute(a, "units", text)
        call check(text == "m s-1", "text attribute")
        call zarr_get_attribute(a, "range", list)
        call check(all(abs(list - [0.1d0, 0.2d0, 0.3d0]) <= 0), "list of reals")
        many = -1
        call zarr_get_attribute(a, "three", many, n)
        call check(n == 3 .and. all(many == [1, 2, 3, -1, -1]), "list of integers")
        call zarr_get_attribute(a, "names", texts)
        call check(all(texts == ["u  ", "vee", "w  "]), "list of texts")
        call zarr_get_attribute(a, "empty", many, n)
        call check(n == 0, "empty list")

        call zarr_get_attribute(a, "three", few, n, stat, errmsg)
        call check_error(zarr_err_limit, "three")
        call check(n == 3, "number of values that do not fit")
        call zarr_get_attribute(a, "three", many, stat=stat, errmsg=errmsg)
        call check_error(zarr_err_invalid, "three")
        call zarr_get_attribute(a, "count", i, stat=stat, errmsg=errmsg)
        call check_error(zarr_err_invalid, "too large for int32")
        call zarr_get_attribute(a, "names", texts(:2), n, stat=stat, errmsg=errmsg)
        call check_error(zarr_err_limit, "names")
        call check(n == 3, "number of texts that do not fit")
        call zarr_get_attribute(a, "units", text(:4), stat=stat, errmsg=errmsg)
        call check_error(zarr_err_limit, "there is room for 4")
        call zarr_get_attribute(a, "units", r, stat=stat, errmsg=errmsg)
        call check_error(zarr_err_invalid, "units")
        call zarr_get_attribute(a, "missing", r, n, stat, errmsg)
        call check_error(zarr_err_not_found, "missing")
        call check(n == 0, "number of values of a missing attribute")
        call zarr_set_attribute(a, "units", .true., stat, errmsg)
        call check_error(zarr_err_invalid, "character")
        call zarr_set_attribute(a, "units", reshape([1, 2, 3, 4], [2, 2]), stat, errmsg)
        call check_error(zarr_err_invalid, "rank 1")
        call zarr_close(a)

        call zarr_open(g, "values.zarr", "r+")
        call zarr_set_attribute(g, "title", "Winds")
        call zarr_get_attribute(g, "title", text)
        call check(text == "Winds", "attribute of a group")
        call zarr_set_attribute(g, "one", [4])
        call zarr_get_attribute(g, "one", i)
        call check(i == 4, "list of one")
        call zarr_close(g)
    end subroutine

    subroutine test_members()
        type(zarr_group) :: g, below
        type(zarr_array) :: a
        character(len=:), allocatable :: names(:)
        logical, allocatable :: is_array(:)

        call zarr_create(g, "members.zarr")
        call zarr_list_members(g, names, is_array)
        call check(size(names) == 0 .and. size(is_array) == 0, "no members")
        call zarr_create(a, "members.zarr/temperature", "int8", [1])
        call zarr_create(below, "members.zarr/run/inner", mode="w")
        call zarr_list_members(g, names)
        call check(size(names) == 2 .and. len(names) == 11, "two members")
        call check(all(names == ["run        ", "temperature"]), "names of members")
        call zarr_list_members(g, names, is_array, stat, errmsg)
        call check(stat == 0 .and. all(is_array .eqv. [.false., .true.]), "kinds of members")
        call zarr_close(a)
        call zarr_close(below)
        call zarr_close(g)
        call zarr_list_members(g, names, is_array, stat, errmsg)
        call check_error(zarr_err_invalid, "not open")
        call check(size(names) == 0 .and. size(is_array) == 0, "no members after a failure")
    end subroutine

    subroutine test_errors()
        type(zarr_array) :: a
        type(zarr_group) :: g
        integer(int64), allocatable :: shape(:)
        real :: x(3, 2), y(2, 3), flat(6)
        integer :: whole(3, 2)
        logical :: l(3, 2)

        call zarr_open(a, "nothing.zarr", stat=stat, errmsg=errmsg)
        call check_error(zarr_err_not_found, "nothing.zarr")
        call open_for_caller(a, "nothing.zarr/b", stat, errmsg)
        call check_error(zarr_err_not_found, "nothing.zarr")
        call zarr_open(g, "values.zarr/int8", stat=stat, errmsg=errmsg)
        call check_error(zarr_err_not_found, "int8")
        call zarr_read(a, x, stat=stat, errmsg=errmsg)
        call check_error(zarr_err_invalid, "not open")
        call zarr_append(a, x, stat, errmsg)
        call check_error(zarr_err_invalid, "not open")
        call zarr_get_shape(a, shape, stat, errmsg)
        call check_error(zarr_err_invalid, "not open")
        call check(size(shape) == 0, "no shape")
        call zarr_set_attribute(g, "a", 1, stat, errmsg)
        call check_error(zarr_err_invalid, "not open")

        call open_for_caller(a, "values.zarr/float32")
        call zarr_read(a, flat, stat=stat, errmsg=errmsg)
        call check_error(zarr_err_invalid, "data has the shape (6)")
        call zarr_read(a, y, stat=stat, errmsg=errmsg)
        call check_error(zarr_err_invalid, "the array (3,2)")
        call zarr_read(a, y, count=[3, 2], stat=stat, errmsg=errmsg)
        call check_error(zarr_err_invalid, "count is (3,2)")
        call zarr_read(a, flat, start=[1, 1], stat=stat, errmsg=errmsg)
        call check_error(zarr_err_invalid, "pass count for another rank")
        call zarr_read(a, flat(1:2), start=[3, 2], count=[1, 2], stat=stat, errmsg=errmsg)
        call check(stat == zarr_err_invalid, "a box that reaches beyond the array")
        call zarr_read(a, x, start=[0, 1], stat=stat, errmsg=errmsg)
        call check_error(zarr_err_invalid, "start(1) is 0, expected at least 1")
        call zarr_read(a, x, count=[3, -2], stat=stat, errmsg=errmsg)
        call check_error(zarr_err_invalid, "count(2) is -2")
        call zarr_read(a, x, start=[1], stat=stat, errmsg=errmsg)
        call check_error(zarr_err_invalid, "start has 1 entries, expected 2")
        call zarr_read(a, x, start=[1.0, 1.0], stat=stat, errmsg=errmsg)
        call check_error(zarr_err_invalid, "start must have integers")
        call zarr_read(a, whole, stat=stat, errmsg=errmsg)
        call check_error(zarr_err_invalid, "float32 is not converted to int32")
        call zarr_read(a, l, stat=stat, errmsg=errmsg)
        call check_error(zarr_err_invalid, "data must be integer, real or complex")
        call write_assumed_size(a, x)
        stat = 1
        errmsg = "as it was"
        call zarr_read(a, x, stat=stat, errmsg=errmsg)
        call check(stat == zarr_ok .and. errmsg == "as it was", "errmsg of a call that succeeds")
        call zarr_close(a)

        call zarr_create(a, "values.zarr/bad", "float33", [2], stat=stat, errmsg=errmsg)
        call check_error(zarr_err_unsupported, "float33")
        call zarr_create(a, "values.zarr/bad", "int8", [2, 2], chunks=[2], stat=stat, errmsg=errmsg)
        call check_error(zarr_err_invalid, "chunks has 1 entries, expected 2")
        call zarr_create(a, "values.zarr/bad", "int8", [2], dimensions=["x", "y"], stat=stat, &
                         errmsg=errmsg)
        call check_error(zarr_err_invalid, "dimensions has 2 entries, expected 1")
        call zarr_create(a, "values.zarr/bad", "int8", spread(1, 1, 65), stat=stat, errmsg=errmsg)
        call check_error(zarr_err_invalid, "shape has 65 entries")
    end subroutine

    subroutine test_text_errors()
        type(zarr_array) :: a
        character(len=7) :: short
        character(len=600) :: long

        call zarr_open(a, "a"//char(0)//"b", stat=stat, errmsg=errmsg)
        call check_error(zarr_err_invalid, "has a NUL inside")
        call zarr_open(a, repeat("x", 4096), stat=stat, errmsg=errmsg)
        call check_error(zarr_err_limit, "has 4096 bytes")
        call zarr_open(a, "", stat=stat, errmsg=errmsg)
        call check(stat == zarr_err_invalid, "empty location")
        call zarr_open(a, "values.zarr/int8", mode="r++++++", stat=stat, errmsg=short)
        call check(stat == zarr_err_invalid .and. short == "the mod", "short errmsg")
        call zarr_open(a, "values.zarr/int8", mode="rr", stat=stat, errmsg=long)
        call check(stat == zarr_err_invalid .and. long(580:) == "", "long errmsg")
        call zarr_open(a, "values.zarr/int8", mode="rr", stat=stat)
        call check(stat == zarr_err_invalid, "stat alone")
    end subroutine
end program
