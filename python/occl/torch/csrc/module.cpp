// What Python sees of the backend.
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/utils/pybind.h>

#include <pybind11/chrono.h>

#include "backend.h"

namespace py = pybind11;

PYBIND11_MODULE(_c10d, m) {
  m.doc() = "PyTorch's backend occl; made by occl.torch.build, loaded by occl.torch";
  m.attr("torch_version") = TORCH_VERSION;
  m.def("load", &occl_torch::loadLibrary, py::arg("path"));

  m.def("close_all", &occl_torch::Communicator::closeAll, py::call_guard<py::gil_scoped_release>(),
        "At the end of the program: what ranks of other machines were sent leaves this process.");

  // PyTorch's own classes are registered when this is imported.
  py::module_::import("torch.distributed");
  py::object base = py::module_::import("torch._C._distributed_c10d").attr("Backend");
  // Older versions do not show the base to Python; only split_group asks for it.
  if (py::hasattr(base, "Options"))
    py::class_<occl_torch::GroupOptions, c10d::Backend::Options,
               c10::intrusive_ptr<occl_torch::GroupOptions>>(m, "Options")
        .def(py::init<std::chrono::milliseconds>(), py::arg("timeout") = kBackendDefaultTimeout)
        .def("__deepcopy__", [](const occl_torch::GroupOptions &self, const py::object &) {
          return c10::make_intrusive<occl_torch::GroupOptions>(self);
        });
  py::class_<occl_torch::Backend, c10d::Backend, c10::intrusive_ptr<occl_torch::Backend>>(m,
                                                                                          "Backend")
      .def(py::init([](const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
                       std::chrono::milliseconds timeout) {
             auto options = c10::make_intrusive<occl_torch::GroupOptions>(timeout);
             py::gil_scoped_release release;
             return c10::make_intrusive<occl_torch::Backend>(store, rank, size, options);
           }),
           py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"))
      .def("failure", &occl_torch::Backend::failure, py::call_guard<py::gil_scoped_release>(),
           "Why the group has failed, as far as this rank knows; \"\" if it has not.");
}
