#include "inference/stale_check.h"

#include <map>
#include <optional>
#include <set>

#include "posenc/nn/token_and_position_embedding.h"
#include "posenc/nn/transformer/transformer_decoder_layer.h"
#include "posenc/nn/transformer/transformer_encoder_layer.h"
#include "torch_internals/version.h"

namespace posenc::inference {
namespace {

// The weights that freeze() multiplies by a layer scale, and the scales, each with the bytes of its
// product.
class ScaledWeights {
 public:
  explicit ScaledWeights(const torch::nn::Module& source) {
    for (const auto& module : source.modules(/*include_self=*/false)) {
      if (const auto* layer = module->as<TransformerEncoderLayerImpl>()) {
        if (layer->self_attn) {
          add(layer->layer_scale1, layer->self_attn->out_proj, layer->post_norm1);
        }
        add(layer->layer_scale2, layer->linear2, layer->post_norm2);
      } else if (const auto* layer = module->as<TransformerDecoderLayerImpl>()) {
        add(layer->layer_scale1, layer->self_attn->out_proj);
        add(layer->layer_scale2, layer->multihead_attn->out_proj);
        add(layer->layer_scale3, layer->linear2);
      }
    }
  }

  std::optional<int64_t> bytes_of_product(const torch::Tensor& tensor) const {
    const auto found = bytes_.find(tensor.unsafeGetTensorImpl());
    return found == bytes_.end() ? std::nullopt : std::optional<int64_t>(found->second);
  }

 private:
  void add(const LayerScale& scale, const torch::nn::Linear& linear,
           const TransformerNorm& post = nullptr) {
    if (scale.is_empty()) return;
    bytes_[scale->lambda1.unsafeGetTensorImpl()] = 0;
    for (const auto& tensor : post ? post->parameters() : linear->parameters()) {
      bytes_[tensor.unsafeGetTensorImpl()] = static_cast<int64_t>(tensor.nbytes());
    }
  }

  std::map<const c10::TensorImpl*, int64_t> bytes_;
};

// The tables that the model itself extends for longer sequences. A frozen model has its own.
std::set<const c10::TensorImpl*> growing_tables(const torch::nn::Module& source) {
  std::set<const c10::TensorImpl*> tables;
  for (const auto& module : source.modules(/*include_self=*/false)) {
    const auto* const embedding = module->as<TokenAndPositionEmbeddingImpl>();
    if (embedding != nullptr &&
        embedding->options.position_ids() == embeddings::PositionIds::FromIds)
      tables.insert(embedding->position_encoding->pe.unsafeGetTensorImpl());
  }
  return tables;
}

[[noreturn]] void refuse(const std::string& what) {
  TORCH_CHECK(false, "[freeze] the model must not change once it is frozen; freeze it again. Got ",
              what);
}

}  // namespace

// A module that is registered twice is two parts.
void StaleCheck::add_parts(const torch::nn::Module& module, const std::string& name) {
  const OptionReader reader = option_reader(module);
  parts_.push_back({name, &module, reader, {}});
  if (reader) reader(module, parts_.back().options);
  for (const auto& child : module.named_children()) {
    add_parts(*child.value(), name.empty() ? child.key() : name + "." + child.key());
  }
}

// Compares a module and those below it with the parts from `part` on; returns the next part.
std::size_t StaleCheck::check_parts(const torch::nn::Module& module, std::size_t part,
                                    std::vector<double>& options) const {
  if (part == parts_.size() || parts_[part].module != &module) {
    refuse("modules that were added, removed or replaced");
  }
  const Part& own = parts_[part];
  if (own.reader) {
    options.clear();
    own.reader(module, options);
    if (options != own.options) {
      refuse("other options of " + (own.name.empty() ? "the model" : own.name));
    }
  }
  ++part;
  for (const auto& child : module.children()) part = check_parts(*child, part, options);
  return part;
}

StaleCheck::StaleCheck(const torch::nn::Module& source) : source_(source.weak_from_this()) {
  add_parts(source, "");
  const ScaledWeights scaled(source);
  const auto growing = growing_tables(source);
  const auto add = [&](const std::string& name, const torch::Tensor& tensor) {
    if (!tensor.defined()) return;
    TORCH_CHECK_VALUE(tensor.is_cpu(), "[freeze] the model must be on the CPU: ", name, ". Got ",
                      tensor.device());
    const auto product = scaled.bytes_of_product(tensor);
    const bool is_copied = product.has_value() || !tensor.is_contiguous();
    entries_.push_back({name, Weak(tensor.getIntrusivePtr()), tensor.const_data_ptr(),
                        torch_internals::version_of(tensor),
                        product.value_or(static_cast<int64_t>(tensor.nbytes())), is_copied,
                        growing.count(tensor.unsafeGetTensorImpl()) > 0});
  };
  for (const auto& item : source.named_parameters()) {
    const torch::Tensor& tensor = item.value();
    TORCH_CHECK_TYPE(!tensor.defined() || tensor.scalar_type() == torch::kFloat,
                     "[freeze] the model must be float32: ", item.key(), ". Got ",
                     tensor.scalar_type());
    add(item.key(), tensor);
  }
  for (const auto& item : source.named_buffers()) {
    // No layer computes with integers: counters may be anything, and change. Rotary frequencies
    // are float64 where the model computes its angles in it (RoFormer).
    if (item.value().defined() && item.value().is_floating_point()) add(item.key(), item.value());
  }
}

void StaleCheck::set_converted(const std::map<const c10::TensorImpl*, int64_t>& bytes) {
  for (Entry& entry : entries_) {
    const auto found = bytes.find(entry.tensor._unsafe_get_target());
    if (found == bytes.end()) continue;
    entry.bytes = found->second;
    entry.is_copied = true;
  }
}

void StaleCheck::check() const {
  for (const Entry& entry : entries_) {
    const auto tensor = entry.tensor.lock();
    // A tensor freed with its module cannot have been changed; otherwise it has been replaced.
    const bool same = tensor.defined() ? (entry.may_grow || tensor->data() == entry.data) &&
                                             torch_internals::version_of(*tensor) == entry.version
                                       : source_.expired();
    if (!same) refuse("other values in " + entry.name);
  }
  const auto source = source_.lock();
  if (!source) return;
  std::vector<double> options;
  if (check_parts(*source, 0, options) != parts_.size()) {
    refuse("modules that were added, removed or replaced");
  }
}

FrozenBytes StaleCheck::bytes() const {
  FrozenBytes bytes = {0, 0};
  for (const Entry& entry : entries_) {
    const auto tensor = entry.tensor.lock();
    const bool shares = !entry.is_copied && tensor.defined() && tensor->data() == entry.data;
    (shares ? bytes.shared : bytes.own) += entry.bytes;
  }
  return bytes;
}

}  // namespace posenc::inference
