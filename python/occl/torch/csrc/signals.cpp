#include "signals.h"

#include <Python.h>
#include <torch/csrc/utils/pybind.h>

namespace occl_torch {

void checkSignals() {
  if (!Py_IsInitialized())
    return;
  bool raised = false;
  const PyGILState_STATE state = PyGILState_Ensure();
  raised = PyErr_CheckSignals() != 0;
  if (raised) {
    pybind11::error_already_set error;
    PyGILState_Release(state);
    throw error;
  }
  PyGILState_Release(state);
}

} // namespace occl_torch
