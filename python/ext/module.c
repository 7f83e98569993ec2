/* module.c - the module `zarrc._core`: its functions, its types and its state. */
#include "plugin.h"

static void put(PyObject **slot, PyObject *value)
{
    PyObject *old = *slot;

    *slot = Py_NewRef(value);
    Py_XDECREF(old);
}

/* bind(make_error, on_log, np_empty, np_array, np_dtype, np_api, describe): what the
 * package gives */
static PyObject *bind(PyObject *module, PyObject *args)
{
    zx_state *st = PyModule_GetState(module);
    PyObject *make_error, *on_log, *np_empty, *np_array, *np_dtype, *np_api, *describe;

    if (!PyArg_ParseTuple(args, "OOOO!O!OO", &make_error, &on_log, &np_empty,
                          &PyType_Type, &np_array, &PyType_Type, &np_dtype, &np_api,
                          &describe) ||
        zx_outputs_init(st, np_api))
        return NULL;
    put(&st->make_error, make_error);
    put(&st->on_log, on_log);
    put(&st->np_empty, np_empty);
    put(&st->np_array, np_array);
    put(&st->np_dtype, np_dtype);
    put(&st->describe, describe);
    Py_RETURN_NONE;
}

/* set_main_thread(ident): also called in the child of a fork */
static PyObject *set_main_thread(PyObject *module, PyObject *ident)
{
    zx_state *st = PyModule_GetState(module);
    const unsigned long number = PyLong_AsUnsignedLong(ident);

    if (PyErr_Occurred())
        return NULL;
    st->main_thread = number;
    Py_RETURN_NONE;
}

/* ask_threads(callable): the next read or write asks it for the threads of all calls */
static PyObject *ask_threads(PyObject *module, PyObject *callable)
{
    zx_state *st = PyModule_GetState(module);

    put(&st->ask_threads, callable);
    atomic_store(&st->max_threads, 0);
    atomic_store(&st->asks, true);
    Py_RETURN_NONE;
}

/* flights() -> the set of requests in flight itself */
static PyObject *flights(PyObject *module, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(((zx_state *)PyModule_GetState(module))->flights);
}

static PyObject *version(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyUnicode_FromString(zarr_version());
}

static PyObject *core_count(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLong(zarr_core_count());
}

static PyMethodDef functions[] = {
    {"bind", bind, METH_VARARGS, NULL},
    {"set_main_thread", set_main_thread, METH_O, NULL},
    {"ask_threads", ask_threads, METH_O, NULL},
    {"flights", flights, METH_NOARGS, NULL},
    {"version", version, METH_NOARGS, NULL},
    {"new_context", zx_new_context, METH_O, NULL},
    {"check_limits", zx_check_limits, METH_O, NULL},
    {"open_store", zx_open_store, METH_VARARGS, NULL},
    {"locate", zx_locate, METH_VARARGS, NULL},
    {"open_composite", zx_open_composite, METH_VARARGS, NULL},
    {"open_array", zx_open_array, METH_VARARGS, NULL},
    {"create_array", zx_create_array, METH_VARARGS, NULL},
    {"open_group", zx_open_group, METH_VARARGS, NULL},
    {"open_node", zx_open_node, METH_VARARGS, NULL},
    {"create_group", zx_create_group, METH_VARARGS, NULL},
    {"open_document", zx_open_document, METH_VARARGS, NULL},
    {"new_queue", zx_new_queue, METH_NOARGS, NULL},
    {"select_slice", zx_select_slice, METH_VARARGS, NULL},
    {"new_quick", zx_new_quick, METH_VARARGS, NULL},
    {"quick_counts", zx_quick_counts, METH_O, NULL},
    {"core_count", core_count, METH_NOARGS, NULL},
    {"empty", zx_small_empty, METH_VARARGS, NULL},
    {"keep_outputs", zx_keep_outputs, METH_O, NULL},
    {"outputs", zx_outputs, METH_NOARGS, NULL},
    {"new_service", zx_new_service, METH_NOARGS, NULL},
    {"open_foreign", zx_open_foreign, METH_VARARGS, NULL},
    {"new_plugin_service", zx_new_plugin_service, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

static int exec(PyObject *module)
{
    zx_state *st = PyModule_GetState(module);
    const struct {
        PyTypeObject **type;
        PyType_Spec *spec;
    } types[] = {{&st->context_type, &zx_context_spec},
                 {&st->store_type, &zx_store_spec},
                 {&st->array_type, &zx_array_spec},
                 {&st->group_type, &zx_group_spec},
                 {&st->vlen_type, &zx_vlen_spec},
                 {&st->queue_type, &zx_queue_spec},
                 {&st->request_type, &zx_request_spec},
                 {&st->selection_type, &zx_selection_spec},
                 {&st->tensor_type, &zx_tensor_spec},
                 {&st->block_type, &zx_block_spec},
                 {&st->service_type, &zx_service_spec},
                 {&st->batch_type, &zx_batch_spec},
                 {&st->device_type, &zx_device_spec},
                 {&st->lock_type, &zx_lock_spec},
                 {&st->quick_type, &zx_quick_spec},
                 {&st->plugin_service_type, &zx_plugin_service_spec},
                 {&st->plugin_call_type, &zx_plugin_call_spec},
                 {&st->chunk_memory_type, &zx_chunk_memory_spec}};

    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
        PyErr_SetString(PyExc_ImportError,
                        "zarrc works in the main interpreter only: threads of the "
                        "library and signals belong to the process");
        return -1;
    }
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (!(*types[i].type = zx_type(module, types[i].spec)))
            return -1;
    st->flights = PySet_New(NULL);
    return st->flights && !zx_constants_add(module) ? zx_quick_init(st) : -1;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    const zx_state *st = PyModule_GetState(module);

    Py_VISIT(st->make_error);
    Py_VISIT(st->on_log);
    Py_VISIT(st->np_empty);
    Py_VISIT(st->np_array);
    Py_VISIT(st->np_dtype);
    Py_VISIT(st->output_handler);
    Py_VISIT(st->describe);
    Py_VISIT(st->ask_threads);
    Py_VISIT(st->flights);
    Py_VISIT(st->context_type);
    Py_VISIT(st->store_type);
    Py_VISIT(st->array_type);
    Py_VISIT(st->group_type);
    Py_VISIT(st->vlen_type);
    Py_VISIT(st->queue_type);
    Py_VISIT(st->request_type);
    Py_VISIT(st->tensor_type);
    Py_VISIT(st->block_type);
    Py_VISIT(st->selection_type);
    Py_VISIT(st->service_type);
    Py_VISIT(st->batch_type);
    Py_VISIT(st->device_type);
    Py_VISIT(st->lock_type);
    Py_VISIT(st->quick_type);
    Py_VISIT(st->plugin_service_type);
    Py_VISIT(st->plugin_call_type);
    Py_VISIT(st->chunk_memory_type);
    return 0;
}

static int clear(PyObject *module)
{
    zx_state *st = PyModule_GetState(module);

    Py_CLEAR(st->make_error);
    Py_CLEAR(st->on_log);
    Py_CLEAR(st->np_empty);
    Py_CLEAR(st->np_array);
    Py_CLEAR(st->np_dtype);
    Py_CLEAR(st->output_handler);
    Py_CLEAR(st->describe);
    Py_CLEAR(st->ask_threads);
    Py_CLEAR(st->flights);
    Py_CLEAR(st->context_type);
    Py_CLEAR(st->store_type);
    Py_CLEAR(st->array_type);
    Py_CLEAR(st->group_type);
    Py_CLEAR(st->vlen_type);
    Py_CLEAR(st->queue_type);
    Py_CLEAR(st->request_type);
    Py_CLEAR(st->tensor_type);
    Py_CLEAR(st->block_type);
    Py_CLEAR(st->selection_type);
    Py_CLEAR(st->service_type);
    Py_CLEAR(st->batch_type);
    Py_CLEAR(st->device_type);
    Py_CLEAR(st->lock_type);
    Py_CLEAR(st->quick_type);
    zx_quick_deinit(st);
    Py_CLEAR(st->plugin_service_type);
    Py_CLEAR(st->plugin_call_type);
    Py_CLEAR(st->chunk_memory_type);
    return 0;
}

static void release(void *module)
{
    clear(module);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)exec},
#ifdef Py_GIL_DISABLED
                                   {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
                                   {0, NULL}};
static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "zarrc._core",
    .m_size = sizeof(zx_state),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = release,
};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
