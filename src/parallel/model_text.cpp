#include "parallel/model_text.h"

#include <c10/util/StringUtil.h>
#include <torch/nn/module.h>

#include <vector>

#include "posenc/version.h"

namespace posenc::parallel {
namespace {

using FirstNames = std::unordered_map<const at::TensorImpl*, std::string>;

std::string tensor_text(const at::Tensor& tensor, const ShardedTensors& shards) {
  if (!tensor.defined()) return "undefined";
  if (tensor.layout() != at::kStrided) return c10::str(tensor.layout());
  std::vector<int64_t> sizes = tensor.sizes().vec();
  const auto shard = shards.find(tensor.unsafeGetTensorImpl());
  if (shard != shards.end()) sizes.front() = shard->second.rows;
  return c10::str(tensor.scalar_type(), " ", at::IntArrayRef(sizes), " strides ", tensor.strides(),
                  tensor.requires_grad() ? " requires_grad" : "",
                  shard != shards.end() ? " split" : "", " on ", tensor.device().type());
}

std::string line_of(const std::string& name, const at::Tensor& tensor, const ShardedTensors& shards,
                    FirstNames& first_names) {
  if (tensor.defined()) {
    const auto [first, is_new] = first_names.emplace(tensor.unsafeGetTensorImpl(), name);
    if (!is_new) return c10::str(name, ": the same as ", first->second, "\n");
  }
  return c10::str(name, ": ", tensor_text(tensor, shards), "\n");
}

}  // namespace

std::string model_text(const torch::nn::Module& module, const ShardedTensors& shards) {
  std::string text = c10::str("posenc ", version(), "\n");
  FirstNames first_names;
  for (const auto& item : module.named_parameters())
    text += line_of("parameter " + item.key(), item.value(), shards, first_names);
  for (const auto& item : module.named_buffers())
    text += line_of("buffer " + item.key(), item.value(), shards, first_names);
  return text;
}

}  // namespace posenc::parallel
