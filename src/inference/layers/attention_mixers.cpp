// Attentions whose scores have biases, and attentions beside a convolution.

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <limits>

#include "inference/attention/attention.h"
#include "inference/attention/grid_biases.h"
#include "inference/attention/relative_bias.h"
#include "inference/attention/rotation.h"
#include "inference/layers/mixers.h"
#include "inference/rows/convolution.h"

namespace posenc::inference {
namespace {

// A MultiheadAttention, or a ConvolutionalAttention.
struct AttentionStep {
  HeadSizes sizes;
  Scoring scoring;
  Projection in_proj, out_proj;  // (sizes.width(), D), (D, sizes.query_width())
  Projection values = {};        // apart from in_proj where the input of queries is rotated
  std::optional<Convolution> convolution = std::nullopt;  // beside the attention
  std::optional<float> clip = std::nullopt;               // of what in_proj gives
  Norm query_norm = {}, key_norm = {};                    // of each head, or of all as one
  bool norms_rotated = false;  // whether these norms are of what has been rotated
  Norm value_norm = {};        // of each head
  std::optional<std::size_t> rotation = std::nullopt;   // of the stack's rotations
  std::optional<std::size_t> growth = std::nullopt;     // of the stack's growths of queries
  std::optional<std::size_t> relative = std::nullopt;   // of the stack's relative biases
  std::optional<std::size_t> grid_bias = std::nullopt;  // of the stack's grid biases
  std::optional<int64_t> window = std::nullopt;

  RowFormat row_format() const { return in_proj.row_format(); }
  // The width of the rows of which out_proj is taken.
  int64_t context_width() const { return (convolution ? 2 : 1) * sizes.query_width(); }
};

// Their biases and rotations are shared.
class AttentionMixers : public StepMixers<AttentionStep> {
 public:
  explicit AttentionMixers(const BlockLayers& layers)
      : alibi(layers.alibi), counts_tokens(layers.counts_tokens) {}
  std::unique_ptr<MixerRun> begin(const BatchRows& batch) const override;
  bool takes_parts() const override { return grid_biases.empty(); }
  bool add_cache_needs(std::size_t step, CacheNeeds& all) const override;
  bool is_axial() const { return !rotations.empty() && rotations.front().is_axial(); }

  std::vector<Rotation> rotations;
  bool rotates_input = false;  // and not queries and keys
  std::vector<QueryGrowth> growths;
  std::vector<RelativeBias> relative_biases;
  GridBiases grid_biases;
  const std::optional<AlibiSlopes> alibi;
  const bool counts_tokens;  // whether distances of ALiBi count rows without padding
};

class AttentionRun : public MixerRun {
 public:
  AttentionRun(const AttentionMixers& own, const BatchRows& batch)
      : own_(own),
        stream_(batch.stream),
        packing_(batch.packing),
        mask_(batch.mask),
        cache_(batch.inputs.cache),
        grid_biases_(own.grid_biases.of(batch.inputs.grid)) {
    if (cache_ == nullptr)
      relative_.emplace(own.relative_biases, own.alibi, mask_, packing_.length);
    int64_t width = 0, context_width = 0, kernels = 0;
    for (const AttentionStep& step : own.steps) {
      width = std::max(width, step.sizes.width());
      context_width = std::max(context_width, step.context_width());
      if (step.convolution)
        kernels = std::max(kernels, step.convolution->heads * step.convolution->size);
    }
    if (kernels > 0) convolution_.emplace(stream_.rows, stream_.width, stream_.width / 2, kernels);
    projected_ = at::empty({stream_.rows, odd_stride(width)}, at::kFloat);
    context_ = at::empty({stream_.rows * context_width}, at::kFloat);
    if (own.rotations.empty()) return;
    if (own.rotates_input) rotated_ = at::empty({stream_.rows, stream_.width}, at::kFloat);
    const RowPositions positions(packing_, batch.inputs.position_ids, own.is_axial());
    for (const Rotation& rotation : own.rotations)
      rotations_.emplace_back(rotation, own.rotates_input ? rotated_ : projected_, positions);
    for (const QueryGrowth& growth : own.growths)
      factors_.push_back(query_factors(growth, positions));
  }

  void read(std::size_t step, const Stream& part, const float* input, int64_t begin) override {
    const AttentionStep& own = own_.steps[step];
    const HeadSizes& sizes = own.sizes;
    const int64_t stride = projected_.size(1);
    float* const heads = projected_.data_ptr<float>() + begin * stride;
    if (own.rotation && own_.rotates_input)
      return read_rotated(own, part, input, begin, heads, stride);
    project(part, own.in_proj, input, heads, stride);
    if (own.convolution) convolution_->project(*own.convolution, part, input, begin);
    if (own.clip) clip_rows(heads, stride, part.rows, sizes.width(), *own.clip);
    if (!own.norms_rotated) normalise(own, heads, part.rows);
    const int64_t queries = sizes.query_width(), keys = sizes.kv_width();
    if (own.value_norm)
      normalise_heads(heads + queries + keys, stride, part.rows, keys, own.value_norm);
    if (own.rotation) rotate(*own.rotation, sizes.width(), begin, part.rows);
    if (own.norms_rotated) normalise(own, heads, part.rows);
    if (own.growth)
      multiply_rows(heads, stride, part.rows, queries, factors_[*own.growth].data() + begin);
  }

  void mix(std::size_t step, const float* input, const SequenceRange& sequences) override {
    const AttentionStep& own = own_.steps[step];
    const int64_t keys = own.sizes.query_width(), kv_width = own.sizes.kv_width();
    const DistanceRows& relative =
        cache_ ? cache_->distances(own_.relative_biases, own_.alibi) : *relative_;
    AttentionInput all = {projected_.narrow(1, 0, keys),
                          projected_.narrow(1, keys, kv_width),
                          projected_.narrow(1, keys + kv_width, kv_width),
                          packing_,
                          packing_,
                          own.sizes,
                          own.scoring,
                          relative.of(own.relative, mask_of(own), packing_, own_.counts_tokens),
                          own.window,
                          own.context_width(),
                          own_.counts_tokens};
    all.has_longer_distances = cache_ != nullptr;
    auto* const context = context_.data_ptr<float>();
    cache_ ? cache_->attend(all, context) : attend(all, sequences, context);
    if (!own.convolution) return;
    // The second half of the columns of the context.
    by_rows(sequences, [&](int64_t begin, int64_t end) {
      const int64_t width = own.context_width();
      convolution_->run(*own.convolution, packing_, input, projected_.const_data_ptr<float>(),
                        projected_.size(1), begin, end, context_.data_ptr<float>() + width / 2,
                        width, stream_.regime);
    });
  }

  void write(std::size_t step, const Stream& part, int64_t begin, const Norm& post,
             const Norm& after) override {
    const AttentionStep& own = own_.steps[step];
    const int64_t width = own.context_width();
    add_projected(part, own.out_proj, context_.const_data_ptr<float>() + begin * width, width, post,
                  after);
  }

 private:
  // Queries and keys of rows of the projection.
  void normalise(const AttentionStep& own, float* heads, int64_t rows) const {
    if (!own.query_norm) return;
    const int64_t queries = own.sizes.query_width(), stride = projected_.size(1);
    normalise_heads(heads, stride, rows, queries, own.query_norm);
    normalise_heads(heads + queries, stride, rows, own.sizes.kv_width(), own.key_norm);
  }

  void rotate(std::size_t rotation, int64_t width, int64_t begin, int64_t rows) const {
    split_rows(rows, width, [&](int64_t first, int64_t last) {
      rotations_[rotation](begin + first, begin + last);
    });
  }

  // Queries and keys of rotated rows, values of the rows themselves.
  void read_rotated(const AttentionStep& own, const Stream& part, const float* input, int64_t begin,
                    float* heads, int64_t stride) const {
    float* const rotated = rotated_.data_ptr<float>() + begin * part.width;
    std::copy_n(input, part.rows * part.width, rotated);
    rotate(*own.rotation, part.width, begin, part.rows);
    own.in_proj.run(rotated, part.width, part.rows, heads, stride, part.regime);
    project(part, own.values, input, heads + own.sizes.query_width() + own.sizes.kv_width(),
            stride);
  }

  ScoreMask mask_of(const AttentionStep& own) const {
    if (!own.grid_bias) return mask_;
    ScoreMask mask = mask_;
    const at::Tensor bias = packing_.kept_pairs((*grid_biases_)[*own.grid_bias]);
    mask.bias = mask.bias.defined() ? mask.bias + bias : bias;
    if (mask.allowed.defined())
      mask.bias.masked_fill_(mask.allowed.logical_not(), -std::numeric_limits<double>::infinity());
    return mask;
  }

  const AttentionMixers& own_;
  const Stream& stream_;
  const Packing& packing_;
  const ScoreMask& mask_;
  at::Tensor projected_, context_, rotated_;  // of one layer
  std::vector<RowRotation> rotations_;
  std::vector<std::vector<float>> factors_;  // of the queries of each row
  TokenCache* const cache_;                  // null: there are no tokens before
  std::optional<DistanceRows> relative_;
  const std::shared_ptr<const std::vector<at::Tensor>> grid_biases_;
  std::optional<ConvolutionRun> convolution_;
};

std::unique_ptr<MixerRun> AttentionMixers::begin(const BatchRows& batch) const {
  return std::make_unique<AttentionRun>(*this, batch);
}

bool AttentionMixers::add_cache_needs(std::size_t step, CacheNeeds& all) const {
  const AttentionStep& own = steps[step];
  all.attentions.push_back({own.sizes, own.window});
  if (own.rotation && rotations[*own.rotation].length_switch())
    all.switches.push_back(*rotations[*own.rotation].length_switch());
  const bool has_biases_of_keys = alibi && alibi->of_positions;  // from the first key on
  return !own.convolution && !own.grid_bias && !rotates_input &&
         !(has_biases_of_keys && own.window);
}

// The rotations of the layers so far, one for all that are the same; returns that of a layer.
std::optional<std::size_t> add_rotation(std::vector<Rotation>& all,
                                        const RotaryEmbeddingImpl* rotary, const HeadSizes& sizes) {
  if (rotary == nullptr) return std::nullopt;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].is_of(*rotary, sizes)) return i;
  }
  all.emplace_back(*rotary, sizes);
  TORCH_CHECK_VALUE(all.front().is_axial() == all.back().is_axial(),
                    "[freeze] the rotary embeddings of all layers must rotate by one position of a "
                    "token, or all by one for each axis. Got some of either");
  return all.size() - 1;
}

// Those of the layers so far, one for all that are the same; returns that of a layer.
std::optional<std::size_t> add_growth(std::vector<QueryGrowth>& all,
                                      const std::optional<QueryGrowth>& own) {
  if (!own) return std::nullopt;
  const auto found = std::find(all.begin(), all.end(), *own);
  const auto index = static_cast<std::size_t>(found - all.begin());
  if (found == all.end()) all.push_back(*own);
  return index;
}

// Without a weight, which a kernel has.
Norm value_norm_of(const MultiheadAttentionImpl& attention) {
  Norm norm;
  if (!attention.options.value_norm()) return norm;
  norm.weight = at::ones({HeadSizes::of(attention.options).head_dim}, at::kFloat);
  norm.eps = static_cast<float>(attention.options.qk_norm_eps());
  norm.kind = kernels::inference::NormKind::RMS;
  return norm;
}

}  // namespace

// Queries and keys have a projection of their own where their input is rotated.
Block freeze_step(const blocks::Attention& own, StackFreezer& stack) {
  const MultiheadAttentionImpl& attention = *own.attention;
  const HeadSizes sizes = HeadSizes::of(attention.options);
  AttentionMixers& all = stack.layers.mixers<AttentionMixers>(stack.layers);
  AttentionStep step = {
      .sizes = sizes,
      .scoring = {scale_of(attention), stack.convert.attention_products(),
                  static_cast<float>(attention.options.softcap().value_or(0.0))},
      .in_proj = {},
      .out_proj = linear(*attention.out_proj, stack.convert, stack.scale_of_weights()),
      .clip = attention.options.qkv_clip(),
      .query_norm = Norm(attention.q_norm),
      .key_norm = Norm(attention.k_norm),
      .norms_rotated = attention.options.qk_norm_after_rotary(),
      .value_norm = value_norm_of(attention),
      .rotation = add_rotation(all.rotations, blocks::get(attention.rotary), sizes),
      .growth = add_growth(all.growths, attention.options.query_growth()),
      .relative = relative_of(all.relative_biases, stack.encoder.relative_attention_bias,
                              attention.relative_attention_bias),
      .grid_bias =
          all.grid_biases.add(blocks::get(stack.encoder.grid_position_bias), own.grid_bias),
      .window = stack.window()};
  if (own.rotates_input != nullptr) {
    const int64_t width = attention.options.embed_dim();
    all.rotates_input = true;
    step.rotation =
        add_rotation(all.rotations, own.rotates_input, {sizes.heads, 0, sizes.head_dim});
    step.in_proj = in_projection(attention, 0, 2 * width, stack.convert);
    step.values = in_projection(attention, 2 * width, width, stack.convert);
  } else {
    step.in_proj = stack.convert.projection(attention.in_proj_weight, attention.in_proj_bias);
  }
  stack.layers.is_axial = all.is_axial();
  return all.add(std::move(step));
}

Block freeze_step(const ConvolutionalAttentionImpl& own, StackFreezer& stack) {
  WeightConverter& convert = stack.convert;
  const int64_t heads = own.options.num_heads(), head_dim = own.options.embed_dim() / (2 * heads);
  stack.layers.sees_padding = true;
  convert.derived(own.depthwise_weight, static_cast<int64_t>(own.depthwise_weight.nbytes()));
  return stack.layers.mixers<AttentionMixers>(stack.layers)
      .add({.sizes = {heads, heads, head_dim},
            .scoring = {score_scale(head_dim), convert.attention_products()},
            .in_proj = convert.projection(own.in_proj_weight, own.in_proj_bias),
            .out_proj = linear(*own.out_proj, convert),
            .convolution =
                Convolution{own.depthwise_weight.t().contiguous(), linear(*own.pointwise, convert),
                            linear(*own.kernel, convert), linear(*own.conv_out, convert), heads,
                            own.options.conv_kernel_size()},
            .window = stack.window()});
}

}  // namespace posenc::inference
