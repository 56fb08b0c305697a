#include "inference/stale_check.h"

#include "torch_internals/version.h"

namespace posenc::inference {

StaleCheck::StaleCheck(const torch::nn::Module& source) : source_(source.weak_from_this()) {
  const auto add = [&](const std::string& name, const torch::Tensor& tensor) {
    if (!tensor.defined()) return;
    TORCH_CHECK_TYPE(tensor.scalar_type() == torch::kFloat,
                     "[freeze] the model must be float32: ", name, ". Got ", tensor.scalar_type());
    TORCH_CHECK_VALUE(tensor.is_cpu(), "[freeze] the model must be on the CPU: ", name, ". Got ",
                      tensor.device());
    entries_.push_back({name, Weak(tensor.getIntrusivePtr()), tensor.const_data_ptr(),
                        torch_internals::version_of(tensor),
                        static_cast<int64_t>(tensor.nbytes())});
  };
  for (const auto& item : source.named_parameters()) add(item.key(), item.value());
  for (const auto& item : source.named_buffers()) add(item.key(), item.value());
}

void StaleCheck::check() const {
  for (const Entry& entry : entries_) {
    const auto tensor = entry.tensor.lock();
    // A tensor freed with its module cannot have been changed; otherwise it has been replaced.
    const bool same = tensor.defined() ? tensor->data() == entry.data &&
                                             torch_internals::version_of(*tensor) == entry.version
                                       : source_.expired();
    TORCH_CHECK(same,
                "[freeze] the model must not change once it is frozen; freeze it again. Got other "
                "values in ",
                entry.name);
  }
}

FrozenBytes StaleCheck::bytes() const {
  FrozenBytes bytes = {0, 0};
  for (const Entry& entry : entries_) {
    const auto tensor = entry.tensor.lock();
    const bool shares = tensor.defined() && tensor->data() == entry.data;
    (shares ? bytes.shared : bytes.own) += entry.bytes;
  }
  return bytes;
}

}  // namespace posenc::inference
