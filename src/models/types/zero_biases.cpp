#include "models/types/zero_biases.h"

#include <ATen/ops/zeros.h>

#include <set>

namespace posenc {

ZeroBiases::ZeroBiases(const io::TensorSource& source, const std::vector<AbsentBias>& biases)
    : SelectedSource(source) {
  std::set<std::string> replaced;
  for (const AbsentBias& bias : biases) replaced.insert(bias.name);
  for (std::size_t i = 0; i < source.entries().size(); ++i) {
    if (replaced.count(source.entries()[i].name) != 0) continue;
    select(i, source.entries()[i]);
  }
  for (const AbsentBias& bias : biases)
    entries_.push_back({.name = bias.name, .sizes = {bias.width}});
}

at::Tensor ZeroBiases::tensor(std::size_t index) const {
  return is_zeros(index) ? at::zeros(entries_[index].sizes) : SelectedSource::tensor(index);
}

at::Tensor ZeroBiases::head(std::size_t index, int64_t axis, int64_t count) const {
  return is_zeros(index) ? at::zeros({count}) : SelectedSource::head(index, axis, count);
}

void ZeroBiases::copy_to(std::size_t index, const at::Tensor& target) const {
  if (!is_zeros(index)) return SelectedSource::copy_to(index, target);
  target.zero_();
}

bool ZeroBiases::equal(std::size_t a, std::size_t b) const {
  if (is_zeros(a) || is_zeros(b)) return is_zeros(a) && is_zeros(b);
  return SelectedSource::equal(a, b);
}

void ZeroBiases::check_values(std::size_t index) const {
  if (!is_zeros(index)) SelectedSource::check_values(index);
}

}  // namespace posenc
