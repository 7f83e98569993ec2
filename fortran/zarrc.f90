! The module zarrc: Zarr arrays and groups from Fortran 2018. Its procedures are those of
! zarrc_fortran.c, which is compiled with it. docs/fortran.md describes them.
!
! Dimensions are in Fortran's order: the first one changes fastest in memory, and is the
! last one in Zarr's metadata. Indices begin at 1. Lengths and indices are integers of 32 or
! 64 bits.
!
! `stat` becomes zarr_ok or one of zarr_err_*. After a failure `errmsg` has the message.
! Without `stat` a failure stops the program with that message. `errmsg` is a text of any
! length. It is declared type(*) because gfortran 12 crashes when a procedure passes on an
! optional argument to character(*).
!
! Locations, attribute names, modes and data types have at most 4095 bytes (zarr_err_limit).
! Arrays have at most 15 dimensions, as in Fortran.
module zarrc
    use, intrinsic :: iso_c_binding, only: c_bool, c_char, c_int, c_int64_t, c_null_ptr, c_ptr
    implicit none
    private
    public :: zarr_open, zarr_create, zarr_close, zarr_get_shape
    public :: zarr_read, zarr_write, zarr_append
    public :: zarr_get_attribute, zarr_set_attribute, zarr_list_members

    ! Values of stat; include/zarrc/error.h says what they mean.
    integer, parameter, public :: zarr_ok = 0, zarr_err_not_found = -1, zarr_err_exists = -2, &
        zarr_err_invalid = -3, zarr_err_unsupported = -4, zarr_err_corrupt = -5, &
        zarr_err_io = -6, zarr_err_no_memory = -7, zarr_err_limit = -8, zarr_err_device = -9, &
        zarr_err_cancelled = -10, zarr_err_abi = -11, zarr_err_internal = -12, &
        zarr_err_conflict = -13, zarr_err_memory_kind = -14, zarr_err_denied = -15

    integer, parameter :: max_rank = 64 ! ZARR_MAX_RANK

    ! An array or a group that is open. A copy is the same handle: after zarr_close() all copies
    ! are invalid. A variable that goes out of scope is not closed.
    type, bind(C), public :: zarr_array
        private
        type(c_ptr) :: handle = c_null_ptr
    end type
    type, bind(C), public :: zarr_group
        private
        type(c_ptr) :: handle = c_null_ptr
    end type

    ! Opens a node at a location such as "run.zarr/temp". mode: "r" or "r+"; absent: "r".
    interface zarr_open
        subroutine zarr_fortran_open_array(array, location, mode, stat, errmsg) bind(C)
            import :: zarr_array, c_char, c_int
            type(zarr_array), intent(inout) :: array
            character(len=*, kind=c_char), intent(in) :: location
            character(len=*, kind=c_char), intent(in), optional :: mode
            integer(c_int), intent(out), optional :: stat
            type(*), dimension(..), intent(inout), optional :: errmsg
        end subroutine
        subroutine zarr_fortran_open_group(group, location, mode, stat, errmsg) bind(C)
            import :: zarr_group, c_char, c_int
            type(zarr_group), intent(inout) :: group
            character(len=*, kind=c_char), intent(in) :: location
            character(len=*, kind=c_char), intent(in), optional :: mode
            integer(c_int), intent(out), optional :: stat
            type(*), dimension(..), intent(inout), optional :: errmsg
        end subroutine
    end interface

    ! Creates a node. mode: "w-" fails if there is one, "w" replaces it, and "a" opens it if
    ! it has the data type and the rank, and no dimension is shorter; absent: "w-".
    interface zarr_create
        subroutine zarr_fortran_create_array(array, location, data_type, shape, chunks, shards, &
                                             dimensions, mode, stat, errmsg) bind(C)
            import :: zarr_array, c_char, c_int
            type(zarr_array), intent(inout) :: array
            character(len=*, kind=c_char), intent(in) :: location, data_type
            type(*), dimension(:), contiguous, intent(in) :: shape
            type(*), dimension(:), contiguous, intent(in), optional :: chunks, shards
            character(len=*, kind=c_char), contiguous, intent(in), optional :: dimensions(:)
            character(len=*, kind=c_char), intent(in), optional :: mode
            integer(c_int), intent(out), optional :: stat
            type(*), dimension(..), intent(inout), optional :: errmsg
        end subroutine
        subroutine zarr_fortran_create_group(group, location, mode, stat, errmsg) bind(C)
            import :: zarr_group, c_char, c_int
            type(zarr_group), intent(inout) :: group
            character(len=*, kind=c_char), intent(in) :: location
            character(len=*, kind=c_char), intent(in), optional :: mode
            integer(c_int), intent(out), optional :: stat
            type(*), dimension(..), intent(inout), optional :: errmsg
        end subroutine
    end interface

    ! Closes a node. A handle that is not open stays as it is.
    interface zarr_close
        subroutine zarr_fortran_close_array(array) bind(C)
            import :: zarr_array
            type(zarr_array), intent(inout) :: array
        end subroutine
        subroutine zarr_fortran_close_group(group) bind(C)
            import :: zarr_group
            type(zarr_group), intent(inout) :: group
        end subroutine
    end interface

    interface
        ! Reads the box of `count` elements from index `start` on. Without `count` it is as
        ! large as `data`, and without `start` it begins at the first element; without both it
        ! must be the whole array.
        subroutine zarr_read(array, data, start, count, stat, errmsg) &
            bind(C, name="zarr_fortran_read")
            import :: zarr_array, c_char, c_int
            type(zarr_array), intent(in) :: array
            type(*), dimension(..), contiguous, intent(inout) :: data
            type(*), dimension(:), contiguous, intent(in), optional :: start, count
            integer(c_int), intent(out), optional :: stat
            type(*), dimension(..), intent(inout), optional :: errmsg
        end subroutine

        ! Writes a box, which is chosen as by zarr_read().
        subroutine zarr_write(array, data, start, count, stat, errmsg) &
            bind(C, name="zarr_fortran_write")
            import :: zarr_array, c_char, c_int
            type(zarr_array), intent(in) :: array
            type(*), dimension(..), contiguous, intent(in) :: data
            type(*), dimension(:), contiguous, intent(in), optional :: start, count
            integer(c_int), intent(out), optional :: stat
            type(*), dimension(..), intent(inout), optional :: errmsg
        end subroutine

        ! Makes an array longer along its last dimension, and writes `data` there. `data` has
        ! the rank of the array, or one less: then it is one step.
        subroutine zarr_append(array, data, stat, errmsg) bind(C, name="zarr_fortran_append")
            import :: zarr_array, c_char, c_int
            type(zarr_array), intent(in) :: array
            type(*), dimension(..), contiguous, intent(in) :: data
            integer(c_int), intent(out), optional :: stat
            type(*), dimension(..), intent(inout), optional :: errmsg
        end subroutine
    end interface

    ! Sets an attribute: an integer, a real, a text, or a list (rank 1) of one of these.
    interface zarr_set_attribute
        subroutine zarr_fortran_set_in_array(array, name, value, stat, errmsg) bind(C)
            import :: zarr_array, c_char, c_int
            type(zarr_array), intent(in) :: array
            character(len=*, kind=c_char), intent(in) :: name
            type(*), dimension(..), contiguous, intent(in) :: value
            integer(c_int), intent(out), optional :: stat
            type(*), dimension(..), intent(inout), optional :: errmsg
        end subroutine
        subroutine zarr_fortran_set_in_group(group, name, value, stat, errmsg) bind(C)
            import :: zarr_group, c_char, c_int
            type(zarr_group), intent(in) :: group
            character(len=*, kind=c_char), intent(in) :: name
            type(*), dimension(..), contiguous, intent(in) :: value
            integer(c_int), intent(out), optional :: stat
            type(*), dimension(..), intent(inout), optional :: errmsg
        end subroutine
    end interface

    ! Gets an attribute. `n` becomes the number of its values, and `value` may then have more
    ! elements than that; without `n` it must have exactly as many. If `value` has too few, the
    ! failure is zarr_err_limit, and `n` is the number needed.
    interface zarr_get_attribute
        subroutine zarr_fortran_get_from_array(array, name, value, n, stat, errmsg) bind(C)
            import :: zarr_array, c_char, c_int
            type(zarr_array), intent(in) :: array
            character(len=*, kind=c_char), intent(in) :: name
            type(*), dimension(..), contiguous, intent(inout) :: value
            integer(c_int), intent(out), optional :: n, stat
            type(*), dimension(..), intent(inout), optional :: errmsg
        end subroutine
        subroutine zarr_fortran_get_from_group(group, name, value, n, stat, errmsg) bind(C)
            import :: zarr_group, c_char, c_int
            type(zarr_group), intent(in) :: group
            character(len=*, kind=c_char), intent(in) :: name
            type(*), dimension(..), contiguous, intent(inout) :: value
            integer(c_int), intent(out), optional :: n, stat
            type(*), dimension(..), intent(inout), optional :: errmsg
        end subroutine
    end interface

    interface
        subroutine get_lengths(array, lengths, n, stat, errmsg) &
            bind(C, name="zarr_fortran_get_lengths")
            import :: zarr_array, c_int, c_int64_t, max_rank
            type(zarr_array), intent(in) :: array
            integer(c_int64_t), intent(inout) :: lengths(max_rank)
            integer(c_int), intent(inout) :: n
            integer(c_int), intent(out), optional :: stat
            type(*), dimension(..), intent(inout), optional :: errmsg
        end subroutine
        subroutine open_members(members, group, n, length, stat, errmsg) &
            bind(C, name="zarr_fortran_open_members")
            import :: zarr_group, c_char, c_int, c_ptr
            type(c_ptr), intent(inout) :: members
            type(zarr_group), intent(in) :: group
            integer(c_int), intent(inout) :: n, length
            integer(c_int), intent(out), optional :: stat
            type(*), dimension(..), intent(inout), optional :: errmsg
        end subroutine
        subroutine get_member(members, i, name, is_array) bind(C, name="zarr_fortran_get_member")
            import :: c_bool, c_char, c_int, c_ptr
            type(c_ptr), value :: members
            integer(c_int), value :: i
            character(len=*, kind=c_char), intent(inout) :: name
            logical(c_bool), intent(inout) :: is_array
        end subroutine
        subroutine close_members(members) bind(C, name="zarr_fortran_close_members")
            import :: c_ptr
            type(c_ptr), value :: members
        end subroutine
    end interface

contains

    ! Gives the lengths of the dimensions of an array. After a failure there are none.
    subroutine zarr_get_shape(array, shape, stat, errmsg)
        type(zarr_array), intent(in) :: array
        integer(c_int64_t), allocatable, intent(out) :: shape(:)
        integer(c_int), intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        integer(c_int64_t) :: lengths(max_rank)
        integer(c_int) :: n

        call get_lengths(array, lengths, n, stat, errmsg)
        allocate (shape(n), source=lengths(1:n))
    end subroutine

    ! Lists the names of the arrays and groups that are direct children of a group, sorted.
    ! A node with damaged metadata is listed too; its is_array is false. After a failure there
    ! are no names.
    subroutine zarr_list_members(group, names, is_array, stat, errmsg)
        type(zarr_group), intent(in) :: group
        character(len=:), allocatable, intent(out) :: names(:)
        logical, allocatable, intent(out), optional :: is_array(:)
        integer(c_int), intent(out), optional :: stat
        character(len=*), intent(inout), optional :: errmsg
        type(c_ptr) :: members
        logical(c_bool) :: array
        integer(c_int) :: i, n, length

        call open_members(members, group, n, length, stat, errmsg)
        allocate (character(len=length) :: names(n))
        if (present(is_array)) allocate (is_array(n))
        do i = 1, n
            call get_member(members, i, names(i), array)
            if (present(is_array)) is_array(i) = array
        end do
        call close_members(members)
    end subroutine

    ! What a call without `stat` does after a failure.
    subroutine stop_program(text, n) bind(C, name="zarr_fortran_stop")
        integer(c_int), value :: n
        character(kind=c_char), intent(in) :: text(n)
        character(len=n) :: message
        integer :: i

        do i = 1, n
            message(i:i) = text(i)
        end do
        error stop message
    end subroutine
end module
