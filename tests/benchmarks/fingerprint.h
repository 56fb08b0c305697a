#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <map>
#include <string>

namespace posenc::benchmarks {

/// A hash of a tensor's bits that another process can compare with its own, as peers.py does: the
/// sum of bits[i] (2 i + 1), modulo 2^64.
inline std::string fingerprint(const at::Tensor& tensor) {
  const auto flat = tensor.detach().contiguous().view(-1);
  const auto bits = flat.view(flat.element_size() == 2 ? at::kShort : at::kInt).to(at::kLong);
  const auto weights = at::arange(1, 2 * bits.numel(), 2, at::kLong);
  return std::to_string(bits.mul(weights).sum().item<int64_t>());
}

/// Returns `make`'s result, computed only in the first call with this name: Google Benchmark calls
/// a function repeatedly to find its number of iterations.
inline const std::string& once(const std::string& name, const std::function<std::string()>& make) {
  static std::map<std::string, std::string> known;
  const auto [entry, added] = known.try_emplace(name);
  if (added) entry->second = make();
  return entry->second;
}

}  // namespace posenc::benchmarks
