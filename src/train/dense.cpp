#include "train/dense.h"

#include <ATen/Functions.h>

#include <map>
#include <string>
#include <utility>

#include "core/torch_internals/shortcut.h"

namespace posenc::train {
namespace {

bool lie_alike(const at::Tensor& a, const at::Tensor& b) {
  return a.strides() == b.strides() || (a.is_contiguous() && b.is_contiguous());
}

// Returns `tensor` if its memory layout is that of `like`, otherwise a copy with that layout.
at::Tensor laid_out_as(const at::Tensor& like, const at::Tensor& tensor) {
  if (lie_alike(like, tensor)) return tensor;
  return at::empty_strided(like.sizes(), like.strides(), like.options()).copy_(tensor);
}

}  // namespace

void run_fused(const std::vector<FusedEntry>& entries,
               const std::function<void(FusedLists&)>& kernel) {
  std::map<std::pair<std::string, at::ScalarType>, FusedLists> calls;
  std::vector<std::pair<at::Tensor, at::Tensor>> copied;  // non-dense parameters, and their copies
  for (std::size_t index = 0; index < entries.size(); ++index) {
    const FusedEntry& entry = entries[index];
    const auto& p = entry.parameter;
    const bool direct = p.is_non_overlapping_and_dense();
    const at::Tensor dense = direct ? p.detach() : p.detach().contiguous();
    if (direct) {
      torch_internals::note_write(p);  // ATen's fused kernels do not do so
    } else {
      copied.emplace_back(p, dense);
    }
    auto& call = calls[{p.device().str(), p.scalar_type()}];
    call.entries.push_back(index);
    call.parameters.push_back(dense);
    call.gradients.push_back(laid_out_as(dense, entry.gradient));
    call.states.resize(entry.states.size());
    for (std::size_t i = 0; i < entry.states.size(); ++i) {
      const at::Tensor& state = *entry.states[i];
      if (state.defined()) torch_internals::note_write(state);
      call.states[i].push_back(state.defined() ? laid_out_as(dense, state) : at::zeros_like(dense));
    }
  }
  for (auto& [key, call] : calls) {
    kernel(call);
    for (std::size_t i = 0; i < call.states.size(); ++i) {
      for (std::size_t j = 0; j < call.entries.size(); ++j)
        *entries[call.entries[j]].states[i] = call.states[i][j];
    }
  }
  for (const auto& [parameter, dense] : copied) parameter.copy_(dense);
}

}  // namespace posenc::train
