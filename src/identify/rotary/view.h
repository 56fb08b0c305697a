#pragma once

// Turns a tensor of any shape into the cosines, sines or frequencies of a rotary embedding.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

namespace posenc::identification {

/// A tensor read as a part of a rotary embedding, on the CPU, in the narrowest dtype that
/// represents it. Either cos, sin or both, or inv_freq.
struct RotaryView {
  std::string holds;    ///< as in RotaryIdentification
  std::string layout;   ///< as there
  at::Tensor cos, sin;  ///< (L, n)
  at::Tensor inv_freq;  ///< (n)
  bool may_be_polar =
      false;  ///< whether torch.polar may have computed them, which rounds differently

  const at::Tensor& values() const { return cos.defined() ? cos : sin; }
  int64_t frequencies() const { return inv_freq.defined() ? inv_freq.size(0) : values().size(1); }
  int64_t length() const { return inv_freq.defined() ? 0 : values().size(0); }
};

/// The view, if the first row is that of position 0, or the frequencies do not grow. `by_name`:
/// whether the tensor's name suggests a rotary embedding; otherwise, shapes that other tensors also
/// have are rejected.
std::optional<RotaryView> rotary_view(const at::Tensor& tensor, bool by_name);

}  // namespace posenc::identification
