// posenc-budget: one module: its parts, a run of its layers, and steps
#include "posenc/transformer/layers/transformer_encoder.h"

#include <cmath>
#include <optional>
#include <ostream>
#include <vector>

#include "core/check.h"
#include "core/print_fields.h"
#include "positions/nn/weights.h"
#include "transformer/functional/drop.h"
#include "transformer/layers/layer_kinds.h"
#include "transformer/layers/layer_parts.h"

namespace posenc {
namespace {

// Options that each layer has of its own.
void check_own_options(const TransformerEncoderOptions& options) {
  const auto& all = options.layers();
  TORCH_CHECK_VALUE(all.empty() || static_cast<int64_t>(all.size()) == options.num_layers(),
                    "[TransformerEncoder] layers must have the options of each of num_layers ",
                    options.num_layers(), " layers, or none. Got ", all.size());
  for (const TransformerLayerOptions& one : all) {
    TORCH_CHECK_VALUE(one.d_model() == options.layer().d_model(),
                      "[TransformerEncoder] d_model of each of layers must be that of layer, ",
                      options.layer().d_model(), ". Got ", one.d_model());
    TORCH_CHECK_VALUE(one.per_layer_input() == options.layer().per_layer_input(),
                      "[TransformerEncoder] per_layer_input of each of layers must be that of "
                      "layer");
    TORCH_CHECK_VALUE(one.batch_first() == options.layer().batch_first(),
                      "[TransformerEncoder] batch_first of each of layers must be that of layer");
    TORCH_CHECK_VALUE((!options.relative() && !options.alibi() && !options.grid_bias()) ||
                          (one.num_heads() == options.layer().num_heads() &&
                           one.mixing() == Mixing::Attention && !one.relative()),
                      "[TransformerEncoder] with relative, alibi or grid_bias, each of layers must "
                      "have the num_heads of "
                      "layer, ",
                      options.layer().num_heads(),
                      ", Mixing::Attention and no relative of its own. Got others");
  }
}

// Factors (., ., 1) of the rows of x, of which those that are not kept have 0.
torch::Tensor row_factors(const torch::Tensor& kept_rows, const torch::Tensor& x) {
  if (!kept_rows.defined()) return {};
  TORCH_CHECK_VALUE(kept_rows.sizes() == x.sizes().slice(0, 2),
                    "[TransformerEncoder] kept_rows must be ", x.sizes().slice(0, 2), ". Got ",
                    kept_rows.sizes());
  return kept_rows.ne(0).unsqueeze(-1).to(x.scalar_type());
}

// The mask of layers with one window, for all that follow with it, of queries after `offset`.
class WindowMasks {
 public:
  WindowMasks(const AttentionMask& mask, const AttentionShape& shape, const torch::Tensor& like,
              int64_t offset = 0)
      : mask_(mask), shape_(shape), like_(like), offset_(offset) {}

  const AttentionMask& of(const TransformerLayerOptions& layer) {
    AttentionShape shape = shape_;
    shape.heads = layer.num_heads();
    for (const auto& [window, heads, ready] : ready_) {
      if (window == layer.window() && heads == shape.heads) return ready;
    }
    ready_.push_back({layer.window(), shape.heads,
                      with_window(mask_, layer).after(offset_).resolved(shape, like_)});
    return ready_.back().mask;
  }

 private:
  struct Ready {
    std::optional<int64_t> window;
    int64_t heads;
    AttentionMask mask;
  };

  const AttentionMask& mask_;
  const AttentionShape shape_;
  const torch::Tensor& like_;
  const int64_t offset_;
  std::vector<Ready> ready_;
};

// The caches of a stack, which have one length.
struct StackCaches {
  std::vector<KeyValueCache>& all;
  int64_t length() const { return all.empty() ? 0 : all.front().length(); }
  void truncate(int64_t length) {
    for (KeyValueCache& one : all) one.truncate(length);
  }
};

// That of a layer whose options have one.
const GridPositionBias& own_grid_bias(const EncoderLayerBase& layer) {
  return dynamic_cast<const TransformerEncoderLayerImpl&>(layer).grid_position_bias;
}

}  // namespace

TransformerEncoderImpl::TransformerEncoderImpl(TransformerEncoderOptions options_)
    : options(options_) {
  TransformerEncoderImpl::reset();
}

void TransformerEncoderImpl::reset() {
  check_positive("TransformerEncoder", "num_layers", options.num_layers());
  check_dropout("TransformerEncoder", options.layer_dropout());
  for (const int64_t i : options.order()) {
    TORCH_CHECK_VALUE(i >= 0 && i < options.num_layers(),
                      "[TransformerEncoder] order must have indices of layers, in [0, ",
                      options.num_layers(), "). Got ", i);
  }
  check_own_options(options);
  if (options.alibi())
    check_alibi("TransformerEncoder", options.layer(), options.relative().has_value());
  layers = register_module("layers", torch::nn::ModuleList());
  for (size_t i = 0; i < static_cast<size_t>(options.num_layers()); ++i) {
    layers->push_back(kind_of(options.layer_at(i)).make(options.layer_at(i)));
  }
  if (options.norm())
    norm = register_module("norm", make_final_norm(options.layer(), options.final_norm_eps(),
                                                   options.final_norm_bias()));
  if (const auto width = options.layer().per_layer_input()) {
    per_layer_projection = register_module(
        "per_layer_projection", make_linear(torch::nn::LinearOptions(options.layer().d_model(),
                                                                     options.num_layers() * *width)
                                                .bias(false)));
    per_layer_norm = register_module(
        "per_layer_norm", make_norm(TransformerLayerOptions(options.layer()).d_model(*width)));
  }
  if (options.relative()) {
    relative_attention_bias = register_module(
        "relative_attention_bias",
        make_shared_bias("TransformerEncoder", options.layer(), *options.relative()));
  }
  if (options.layer().transformer_xl())
    shifted_positions =
        register_module("shifted_positions", TransformerXLPositions(options.layer()));
  if (options.grid_bias()) {
    TORCH_CHECK_VALUE(
        attends_plainly(options.layer()),
        "[TransformerEncoder] grid_bias must be with layers of Mixing::Attention "
        "without a bottleneck, disentangled or Transformer-XL's attention and a conformer. "
        "Got others");
    grid_position_bias = register_module(
        "grid_position_bias", GridPositionBias(*options.grid_bias(), options.layer().num_heads()));
  }
  const auto& disentangled = options.layer().disentangled();
  if (!disentangled) return;
  relative_embeddings = register_module("relative_embeddings", RelativeEmbeddings(options.layer()));
  if (disentangled->conv_kernel_size() > 0)
    conv = register_module("conv", ConvolutionBeside(options.layer()));
}

void TransformerEncoderImpl::reset_parameters() {
  for (size_t i = 0; i < layers->size(); ++i) layer(i).reset_parameters();
  if (norm) norm->reset_parameters();
  if (relative_attention_bias) relative_attention_bias->reset_parameters();
  if (grid_position_bias) grid_position_bias->reset_parameters();
  if (relative_embeddings) relative_embeddings->reset_parameters();
  if (conv) conv->reset_parameters();
  if (shifted_positions) shifted_positions->reset_parameters();
  if (per_layer_projection) per_layer_projection->reset_parameters();
  if (per_layer_norm) per_layer_norm->reset_parameters();
}

// (..., num_layers, P)
torch::Tensor TransformerEncoderImpl::per_layer_inputs(const torch::Tensor& x) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(options.layer().d_model()));
  const auto all = (per_layer_projection->forward(x) * scale)
                       .unflatten(-1, {-1, *options.layer().per_layer_input()});
  return per_layer_norm->forward(all);
}

void TransformerEncoderImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "TransformerEncoder", options,
                       TransformerEncoderOptions(options.layer(), -1));
}

// Callers can modify the ModuleList.
EncoderLayerBase& TransformerEncoderImpl::layer(size_t i) const {
  const auto layer = layers->ptr(i);
  auto* const own = dynamic_cast<EncoderLayerBase*>(layer.get());
  TORCH_CHECK_VALUE(own != nullptr,
                    "[TransformerEncoder] each layer must be a TransformerEncoderLayer, a "
                    "BottleneckEncoderLayer or a ConformerEncoderLayer. Got for layer ",
                    i, " a ", layer->name());
  return *own;
}

torch::Tensor TransformerEncoderImpl::forward(const torch::Tensor& x, const AttentionMask& mask,
                                              const torch::Tensor& position_ids) {
  TransformerEncoderRecord nothing;
  return forward_with(x, mask, nothing, position_ids);
}

torch::Tensor TransformerEncoderImpl::forward_with(
    const torch::Tensor& x, const AttentionMask& mask, TransformerEncoderRecord& record,
    const torch::Tensor& position_ids, const torch::Tensor& kept_rows,
    const torch::Tensor& segments, std::optional<relative::Grid> grid) {
  const torch::Tensor factors = row_factors(kept_rows, x);
  const AttentionShape shape = attention_shape("TransformerEncoder", x, x, options.layer());
  check_grid("TransformerEncoder", options, grid, shape.queries);
  const AttentionMask own_mask = with_shared_bias(
      mask_of_stack(mask, options.layer()), relative_attention_bias, shape.queries, shape.keys);
  const AttentionMask biased =
      with_grid_bias(with_alibi(own_mask, options.alibi(), shape, x), grid_position_bias, grid);
  WindowMasks masks(biased, shape, x);
  torch::Tensor out = x;
  const auto add_hidden_state = [&] {
    if (record.output_hidden_states) record.hidden_states.push_back(out);
  };
  add_hidden_state();
  const auto& transformer_xl = options.layer().transformer_xl();
  TORCH_CHECK_VALUE(!segments.defined() || (transformer_xl && transformer_xl->segments()),
                    "[TransformerEncoder] segments must be undefined without "
                    "TransformerXLOptions::segments. Got segments");
  StackPositions relative = {{}, segments};
  if (relative_embeddings) relative.table = relative_embeddings->forward();
  if (shifted_positions) relative.table = shifted_positions->forward(x);
  const torch::Tensor per_layer = per_layer_projection ? per_layer_inputs(x) : torch::Tensor();
  bool is_first = true;
  for (const size_t i : layers_in_order(options.order(), layers->size())) {
    EncoderLayerBase& one = layer(i);
    torch::Tensor weights;
    const bool is_skipped = is_training() && options.layer_dropout() > 0.0 &&
                            torch::rand({}).item<double>() < options.layer_dropout();
    if (is_skipped) continue;  // and not recorded, as in transformers
    const TransformerLayerOptions& own = one.layer_options();
    const bool attends = own.mixing() != Mixing::Fourier;
    const AttentionMask layer_mask = own.grid_bias()
                                         ? with_grid_bias(masks.of(own), own_grid_bias(one), grid)
                                         : (attends ? masks.of(own) : mask);
    if (per_layer.defined())
      relative.per_layer_input = per_layer.select(-2, static_cast<int64_t>(i));
    out = one.run(out, relative, layer_mask, position_ids,
                  record.output_attentions ? &weights : nullptr);
    if (conv && is_first) out = conv->forward(x, out, mask.padding_keys());
    is_first = false;
    if (factors.defined()) out = out * factors;
    if (record.output_attentions) record.attentions.push_back(weights);
    add_hidden_state();
  }
  if (shifted_positions && !options.layer().conformer())
    out = drop(*shifted_positions->dropout, out);
  return norm ? norm->forward(out) : out;
}

TransformerEncoderLayerImpl& TransformerEncoderImpl::causal_layer(size_t i) const {
  auto* const own = dynamic_cast<TransformerEncoderLayerImpl*>(&layer(i));
  TORCH_CHECK_VALUE(own != nullptr && own->self_attn && !own->grid_position_bias &&
                        !own->options.per_layer_input() && !grid_position_bias,
                    "[TransformerEncoder] step() needs layers that are a TransformerEncoderLayer "
                    "of Mixing::Attention, without per_layer_input and a grid bias. Got another "
                    "layer ",
                    i);
  return *own;
}

std::vector<KeyValueCache> TransformerEncoderImpl::make_caches(int64_t batch,
                                                               int64_t capacity) const {
  std::vector<KeyValueCache> caches;
  for (const size_t i : layers_in_order(options.order(), layers->size())) {
    const TransformerEncoderLayerImpl& one = causal_layer(i);
    caches.push_back(one.self_attn->make_cache(batch, capacity, one.options.window()));
  }
  return caches;
}

torch::Tensor TransformerEncoderImpl::step(torch::Tensor x, std::vector<KeyValueCache>& caches,
                                           const AttentionMask& mask,
                                           const torch::Tensor& position_ids,
                                           TransformerEncoderRecord* record) {
  const torch::NoGradGuard no_grad;
  const auto order = layers_in_order(options.order(), layers->size());
  TORCH_CHECK_VALUE(caches.size() == order.size(), "[TransformerEncoder] caches must be ",
                    order.size(), ", those of make_caches(). Got ", caches.size());
  StackCaches all = {caches};
  const int64_t before = all.length();
  AttentionShape shape = attention_shape("TransformerEncoder", x, x, options.layer());
  shape.keys += before;
  // Padding is before the tokens of a row, so that ALiBi's distances are those of columns.
  const AttentionMask own =
      with_shared_bias(with_alibi(mask, options.alibi(), shape, x), relative_attention_bias,
                       shape.queries, shape.keys, before);
  WindowMasks masks(own, shape, x, before);
  const auto add_hidden_state = [&] {
    if (record != nullptr && record->output_hidden_states) record->hidden_states.push_back(x);
  };
  return all_or_nothing(all, [&] {
    add_hidden_state();
    for (size_t run = 0; run < order.size(); ++run) {
      TransformerEncoderLayerImpl& one = causal_layer(order[run]);
      const auto window = caches[run].window();
      TORCH_CHECK_VALUE(!window || window == one.options.window(),
                        "[TransformerEncoder] a cache with a window must be of the layer's. Got ",
                        window.value_or(0), " for layer ", order[run]);
      x = one.step(x, caches[run], masks.of(one.options), position_ids);
      add_hidden_state();
    }
    return norm ? norm->forward(x) : x;
  });
}

}  // namespace posenc
