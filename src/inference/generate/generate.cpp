#include "posenc/inference/generate.h"

#include <algorithm>

#include "core/check.h"
#include "inference/generate/source_memory.h"
#include "transformer/functional/attention_mask_internals.h"

namespace posenc {
namespace {

using torch::Tensor;

// Decodes with the modules themselves.
class ModelDecoder : public StepModel {
 public:
  ModelDecoder(TransformerImpl& model, DecoderCache cache, bool keeps_attention)
      : model_(model), cache_(std::move(cache)), keeps_attention_(keeps_attention) {}

  Tensor step(const Tensor& tokens) override {
    auto* const weights = keeps_attention_ ? &weights_ : nullptr;
    if (!positions_) return model_.step(tokens, cache_, weights);
    const auto embedded = model_.tgt_embedding->forward(tokens, positions_->past, positions_->ids);
    positions_.reset();
    return model_.final_layer->forward(
        model_.decoder->step(embedded, cache_, weights).select(1, -1));
  }
  void set_positions(const StepPositions& positions) override { positions_ = positions; }
  Tensor attention() const override {
    return weights_.defined() ? weights_.select(1, -1) : weights_;
  }
  void select(const Tensor& rows) override {
    cache_.select(rows.to(cache_.layers.front().memory.key.device()));
  }
  void check_unchanged() const override { check_eval_mode("generate", model_); }

 private:
  TransformerImpl& model_;
  DecoderCache cache_;
  bool keeps_attention_;
  Tensor weights_;  // (R, 1, S)
  std::optional<StepPositions> positions_;
};

class ModelMemory final : public inference::SourceMemory {
 public:
  // The model is a holder's, which `held` keeps, or the caller keeps it.
  ModelMemory(std::shared_ptr<torch::nn::Module> held, TransformerImpl& model, const Tensor& src,
              const AttentionMask& mask)
      : SourceMemory(model.options, src), held_(std::move(held)), model_(model), mask_(mask) {
    const torch::NoGradGuard no_grad;
    memory_ = model.encode(src, mask);  // (B, S, D)
    const DecoderCache cache = model.start(memory_, /*capacity=*/1);
    for (const auto& layer : cache.layers) heads_.push_back(layer.memory);
  }

  Hypotheses search(SearchPlan plan, const Indices& sources) const override {
    check_eval_mode("generate", model_);
    const torch::NoGradGuard no_grad;
    ModelDecoder decoder(model_, start(sources, plan.rows_per_source, plan.steps),
                         plan.reads_attention());
    return posenc::search(decoder, plan, memory_.device());
  }

  Tensor next_logits(const Indices& sources, const Targets& targets) const override {
    check_eval_mode("next_logits", model_);
    const torch::NoGradGuard no_grad;
    const Tensor hidden = decoded(sources, targets, nullptr);
    std::vector<int64_t> last;
    for (const auto& target : targets) last.push_back(static_cast<int64_t>(target.size()) - 1);
    const Tensor rows = index(last).view({-1, 1, 1}).expand({-1, 1, hidden.size(2)});
    return model_.final_layer->forward(hidden.gather(1, rows).squeeze(1)).to(torch::kFloat);
  }

  std::vector<Tensor> attention(const Indices& sources, const Targets& targets,
                                const std::vector<LayerHead>& heads) const override {
    check_eval_mode("attention", model_);
    const torch::NoGradGuard no_grad;
    std::vector<Tensor> of_layers, found;  // (B, H, L, S)
    decoded(sources, targets, &of_layers);
    for (size_t i = 0; i < targets.size(); ++i) {
      const auto row = static_cast<int64_t>(i), length = static_cast<int64_t>(targets[i].size());
      const Tensor own = torch::empty({static_cast<int64_t>(heads.size()), length, memory_.size(1)},
                                      torch::kFloat);
      for (size_t one = 0; one < heads.size(); ++one)
        own[static_cast<int64_t>(one)].copy_(
            of_layers[heads[one].layer][row][heads[one].head].narrow(0, 0, length));
      found.push_back(own);
    }
    return found;
  }

 private:
  Tensor index(const Indices& numbers) const {
    return torch::tensor(numbers, torch::kLong).to(memory_.device());
  }

  // A cache for `times` adjacent rows of each source. The mask is for as many queries as tokens.
  DecoderCache start(const Indices& sources, int64_t times, int64_t capacity) const {
    const Tensor rows = index(sources).repeat_interleave(times);
    const bool are_all = times == 1 && sources == all_sources(memory_.size(0));
    const auto of_rows = [&](const Tensor& all) {
      return are_all ? all : all.index_select(0, rows);
    };
    DecoderCache cache;
    for (const functional::Heads& all : heads_) {
      const functional::Heads own = {{}, of_rows(all.key), of_rows(all.value)};
      cache.layers.push_back({KeyValueCache(own, capacity), own});
    }
    const AttentionShape shape = {memory_.size(0), model_.decoder->options.layer().num_heads(),
                                  capacity, memory_.size(1)};
    cache.memory_mask = mask_.resolved(shape, memory_);
    if (!are_all) cache.memory_mask = AttentionMaskAccess::sequences(cache.memory_mask, rows);
    return cache;
  }

  // The decoder's output (B, L, D) for targets with what does not matter after them.
  Tensor decoded(const Indices& sources, const Targets& targets,
                 std::vector<Tensor>* attentions) const {
    size_t most = 0;
    for (const auto& target : targets) most = std::max(most, target.size());
    const auto rows = static_cast<int64_t>(targets.size()), length = static_cast<int64_t>(most);
    const Tensor ids = torch::zeros({rows, length}, torch::kLong);
    for (int64_t row = 0; row < rows; ++row)
      std::copy(targets[row].begin(), targets[row].end(), ids.data_ptr<int64_t>() + row * length);
    auto cache = start(sources, 1, length);
    return model_.decoder->step(model_.tgt_embedding->forward(ids.to(memory_.device())), cache,
                                nullptr, attentions);
  }

  const std::shared_ptr<torch::nn::Module> held_;
  TransformerImpl& model_;
  const AttentionMask mask_;
  Tensor memory_;
  std::vector<functional::Heads> heads_;  // of each layer
};

}  // namespace

EncodedSources encode_sources(const Transformer& model, const Tensor& src,
                              const AttentionMask& src_mask) {
  TORCH_CHECK_VALUE(!model.is_empty(), "[encode_sources] the model must not be an empty holder");
  check_eval_mode("encode_sources", *model);
  check_sources("encode_sources", src, model->options);
  return inference::SourceMemory::sources(std::make_shared<ModelMemory>(
      model.ptr(), *model.ptr(), src, AttentionMaskAccess::copied(src_mask)));
}

std::vector<std::vector<Hypothesis>> generate(TransformerImpl& model, const Tensor& src,
                                              const AttentionMask& src_mask,
                                              const GenerateOptions& options) {
  auto held = model.weak_from_this().lock();  // a callback may drop the caller's holder
  check_eval_mode("generate", model);
  check_sources("generate", src, model.options);
  SearchPlan plan = plan_search(options, src, model.options);
  if (plan.sources == 0) return {};
  const auto sources = all_sources(plan.sources);
  return ModelMemory(std::move(held), model, src, src_mask).search(std::move(plan), sources);
}

std::vector<std::vector<Hypothesis>> generate(const Transformer& model, const Tensor& src,
                                              const AttentionMask& src_mask,
                                              const GenerateOptions& options) {
  TORCH_CHECK_VALUE(!model.is_empty(), "[generate] the model must not be an empty holder");
  return generate(*model.ptr(), src, src_mask, options);
}

std::vector<std::vector<Hypothesis>> generate(TransformerImpl& model, const Tensor& src,
                                              const GenerateOptions& options) {
  return generate(model, src, AttentionMask(), options);
}

std::vector<std::vector<Hypothesis>> generate(const Transformer& model, const Tensor& src,
                                              const GenerateOptions& options) {
  return generate(model, src, AttentionMask(), options);
}

}  // namespace posenc
