! Appends 25 time steps of a field. A second run appends 25 more. To read them in Python:
! xarray.open_zarr("steps.zarr", consolidated=False)
program append_steps
    use, intrinsic :: iso_fortran_env, only: int64, real32, real64
    use zarrc
    implicit none
    integer, parameter :: nx = 4, ny = 3
    type(zarr_array) :: temp, time
    integer(int64), allocatable :: shape(:)
    real(real32) :: field(nx, ny)
    integer :: i, x, y

    call zarr_create(temp, "steps.zarr/temp", "float32", shape=[nx, ny, 0], &
                     chunks=[nx, ny, 10], dimensions=["x   ", "y   ", "time"], mode="a")
    call zarr_set_attribute(temp, "units", "K")
    call zarr_create(time, "steps.zarr/time", "float64", shape=[0], chunks=[100], &
                     dimensions=["time"], mode="a")
    call zarr_set_attribute(time, "units", "hours since 2026-01-01")

    call zarr_get_shape(time, shape)
    do i = int(shape(1)) + 1, int(shape(1)) + 25
        do concurrent (x = 1:nx, y = 1:ny)
            field(x, y) = 270 + real(x + 10*y + 100*i, real32)
        end do
        call zarr_append(temp, field)
        call zarr_append(time, real(i, real64))
    end do
    call zarr_get_shape(temp, shape)
    print "(a,3(1x,i0))", "shape", shape

    call zarr_close(temp)
    call zarr_close(time)
end program
