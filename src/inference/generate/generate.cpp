#include "posenc/inference/generate.h"

#include "core/check.h"
#include "inference/generate/step_model.h"
#include "transformer/functional/attention_mask_internals.h"

namespace posenc {
namespace {

// Expands a mask for all queries to one row per sequence; the rows of one source are adjacent.
AttentionMask repeated(const AttentionMask& mask, const AttentionShape& shape,
                       const torch::Tensor& memory, int64_t times) {
  const AttentionMask resolved = mask.resolved(shape, memory);
  const auto bias = AttentionMaskAccess::resolve(resolved, shape, memory).bias;
  if (!bias.defined() || bias.size(0) == 1) return resolved;
  return AttentionMask::additive(bias.repeat_interleave(times, 0));
}

// Decodes with the modules themselves.
class ModelDecoder : public StepModel {
 public:
  ModelDecoder(TransformerImpl& model, DecoderCache cache, bool keeps_attention)
      : model_(model), cache_(std::move(cache)), keeps_attention_(keeps_attention) {}

  torch::Tensor step(const torch::Tensor& tokens) override {
    auto* const weights = keeps_attention_ ? &weights_ : nullptr;
    if (!positions_) return model_.step(tokens, cache_, weights);
    const auto embedded = model_.tgt_embedding->forward(tokens, positions_->past, positions_->ids);
    positions_.reset();
    return model_.final_layer->forward(
        model_.decoder->step(embedded, cache_, weights).select(1, -1));
  }
  void set_positions(const StepPositions& positions) override { positions_ = positions; }
  torch::Tensor attention() const override {
    return weights_.defined() ? weights_.select(1, -1) : weights_;
  }
  void select(const torch::Tensor& rows) override {
    cache_.select(rows.to(cache_.layers.front().memory.key.device()));
  }
  void check_unchanged() const override { check_eval_mode("generate", model_); }

 private:
  TransformerImpl& model_;
  DecoderCache cache_;
  bool keeps_attention_;
  torch::Tensor weights_;  // (R, 1, S)
  std::optional<StepPositions> positions_;
};

}  // namespace

std::vector<std::vector<Hypothesis>> generate(TransformerImpl& model, const torch::Tensor& src,
                                              const AttentionMask& src_mask,
                                              const GenerateOptions& options) {
  const auto held = model.weak_from_this().lock();  // a callback may drop the caller's holder
  check_eval_mode("generate", model);
  const SearchPlan plan = plan_search(options, src, model.options);
  const torch::NoGradGuard no_grad;
  if (plan.sources == 0) return {};
  const int64_t rows = plan.rows_per_source;
  const auto memory = model.encode(src, src_mask);  // (B, S, D)
  const int64_t heads = model.decoder->options.layer().num_heads();
  const auto mask =
      repeated(src_mask, {plan.sources, heads, plan.steps, src.size(1)}, memory, rows);
  ModelDecoder decoder(model, model.start(memory.repeat_interleave(rows, 0), plan.steps, mask),
                       plan.reads_attention());
  return search(decoder, plan, memory.device());
}

std::vector<std::vector<Hypothesis>> generate(const Transformer& model, const torch::Tensor& src,
                                              const AttentionMask& src_mask,
                                              const GenerateOptions& options) {
  TORCH_CHECK_VALUE(!model.is_empty(), "[generate] the model must not be an empty holder");
  return generate(*model.ptr(), src, src_mask, options);
}

std::vector<std::vector<Hypothesis>> generate(TransformerImpl& model, const torch::Tensor& src,
                                              const GenerateOptions& options) {
  return generate(model, src, AttentionMask(), options);
}

std::vector<std::vector<Hypothesis>> generate(const Transformer& model, const torch::Tensor& src,
                                              const GenerateOptions& options) {
  return generate(model, src, AttentionMask(), options);
}

}  // namespace posenc
