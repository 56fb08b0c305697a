#include "models/encoder/saved_tables.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/pow.h>
#include <c10/util/StringUtil.h>

#include "models/model_folder.h"

namespace posenc {
namespace {

at::Tensor tensor_in(const io::TensorSource& source, const std::string& name) {
  const auto* entry = find_entry(source, name);
  if (entry == nullptr) return {};
  const auto index = static_cast<std::size_t>(entry - source.entries().data());
  return source.tensor(index).to(at::kFloat).cpu();
}

WeightsError wrong_tensor(const std::string& name, const std::string& rule) {
  return WeightsError(WeightsErrorCode::ShapeMismatch, rule).in_tensor(name);
}

// RoFormerSinusoidalPositionalEmbedding: sin in the first half of the columns, cos in the second.
void check_table(const RotaryOptions& rotary, const at::Tensor& table, const std::string& name) {
  const int64_t pairs = rotary.rotary_dim() / 2;
  bool is_computed = table.dim() == 2 && table.size(1) == 2 * pairs;
  if (is_computed) {
    const auto rows = at::arange(table.size(0), at::kDouble).unsqueeze(1);
    const auto angles =
        rows / at::pow(rotary.base(), at::arange(pairs, at::kDouble) / static_cast<double>(pairs));
    const at::Tensor expected = at::cat({angles.sin(), angles.cos()}, 1).to(at::kFloat);
    is_computed = at::allclose(table, expected, /*rtol=*/0.0, /*atol=*/1e-5);
  }
  if (!is_computed) {
    throw wrong_tensor(name,
                       "must be the sinusoid that RoFormer's positions are, which posenc "
                       "computes. Got other numbers");
  }
}

void set_frequencies(EncoderImpl& model, const at::Tensor& frequencies, const std::string& name) {
  for (const auto& layer : *model.encoder->layers) {
    const auto& rotary = layer->as<TransformerEncoderLayerImpl>()->self_attn->rotary;
    if (!rotary) continue;
    if (rotary->inv_freq.sizes() != frequencies.sizes()) {
      throw wrong_tensor(name, "must have the frequencies of a head of these layers. Got shape (" +
                                   c10::Join(", ", frequencies.sizes()) + ")");
    }
    rotary->inv_freq.copy_(frequencies);
  }
}

}  // namespace

void read_saved_tables(const EncoderConfig& config, const io::TensorSource& source,
                       const std::string& prefix, EncoderImpl& model) {
  const EncoderStructure& structure = config.structure;
  const auto& rotary = config.options.encoder().layer().rotary();
  if (!rotary) return;
  if (*structure.rotary_table != '\0') {
    const std::string name = prefix + structure.rotary_table;
    const at::Tensor table = tensor_in(source, name);
    if (table.defined()) check_table(rotary->rotary(), table, name);
  }
  if (*structure.frequencies == '\0') return;
  // Older files have the same in each layer; those of transformers 5.23 have an asterisk there.
  const std::string old[] = {"encoder.layer.*.attention.self.rotary_embeddings.inv_freq",
                             "encoder.layer.0.attention.self.rotary_embeddings.inv_freq"};
  for (const std::string& own : {std::string(structure.frequencies), old[0], old[1]}) {
    const at::Tensor frequencies = tensor_in(source, prefix + own);
    if (!frequencies.defined()) continue;
    return set_frequencies(model, frequencies, prefix + own);
  }
}

}  // namespace posenc
