#pragma once

#include <torch/nn/modules/container/modulelist.h>

#include "posenc/transformer/layers/window_stage.h"

namespace posenc {

/// The width of a stage's map before and after it.
inline int64_t width_before(const WindowStageOptions& stage) {
  return stage.layers().front().layer().d_model();
}
inline int64_t width_after(const WindowStageOptions& stage) {
  return (stage.downsample() ? 2 : 1) * width_before(stage);
}

/// Throws c10::ValueError for options that contradict each other.
void check_stage(const WindowStageOptions& options);

/// Member i of a list. Throws c10::ValueError if it is another module.
template <typename Impl>
Impl& member_of(const char* module, const char* member, const torch::nn::ModuleList& list,
                size_t i) {
  const auto held = list->ptr(i);
  auto* const own = held->as<Impl>();
  TORCH_CHECK_VALUE(own != nullptr, "[", module, "] each of them must be a ", member, ". Got for ",
                    i, " a ", held->name());
  return *own;
}

}  // namespace posenc
