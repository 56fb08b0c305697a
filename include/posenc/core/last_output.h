#pragma once

#include <ATen/core/Tensor.h>

#include <mutex>

namespace posenc {

/// The tensor that a module returned last, reused once nobody else holds it: its pages
/// are there already, and the first touch of new ones costs more than all the work on them. A copy
/// of the module starts without one. May be used by several threads at a time.
class LastOutput {
 public:
  LastOutput() = default;
  LastOutput(const LastOutput&) {}
  LastOutput& operator=(const LastOutput&) { return *this; }

  /// The kept tensor if it is contiguous, has these sizes and type, and neither it nor its memory
  /// has another holder; else an undefined one. It is kept no longer.
  at::Tensor take(at::IntArrayRef sizes, at::ScalarType dtype);
  void keep(const at::Tensor& output);

 private:
  std::mutex mutex_;
  at::Tensor tensor_;
};

}  // namespace posenc
