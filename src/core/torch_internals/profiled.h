#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

namespace posenc::torch_internals {

/// RAII guard: while it is alive, profilers see an operation `name`, which must outlive it, with
/// these inputs. As in the dispatcher, this costs a single call without a profiler.
class Profiled {
 public:
  template <typename... Tensors>
  explicit Profiled(std::string_view name, const Tensors&... inputs) {
    auto callbacks = at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION);
    if (C10_UNLIKELY(callbacks.has_value())) begin(std::move(*callbacks), name, {inputs...});
  }

 private:
  void begin(at::StepCallbacks&& callbacks, std::string_view name,
             std::initializer_list<at::Tensor> inputs);

  std::optional<at::RecordFunction> function_;
};

}  // namespace posenc::torch_internals
