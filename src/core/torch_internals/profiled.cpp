#include "core/torch_internals/profiled.h"

#include <ATen/SequenceNumber.h>
#include <ATen/core/grad_mode.h>

#include <utility>
#include <vector>

namespace posenc::torch_internals {

void Profiled::begin(at::StepCallbacks&& callbacks, std::string_view name,
                     std::initializer_list<at::Tensor> inputs) {
  function_.emplace(std::move(callbacks));
  // The sequence number of the next node, by which profilers match a backward with its forward.
  const int64_t node =
      at::GradMode::is_enabled() ? static_cast<int64_t>(at::sequence_number::peek()) : -1;
  if (function_->needsInputs()) {
    const std::vector<c10::IValue> values(inputs.begin(), inputs.end());
    function_->before(name, &values, node);
  } else {
    function_->before(name, node);
  }
}

}  // namespace posenc::torch_internals
