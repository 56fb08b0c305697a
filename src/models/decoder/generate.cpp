// generate() and score() of Decoder: a search over its own steps.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "inference/generate/step_model.h"
#include "models/decoder/parts.h"
#include "posenc/models/decoder.h"

namespace posenc {
namespace {

using Lists = std::vector<std::vector<int64_t>>;

at::Tensor numbers(const std::vector<int64_t>& values, const at::Device& device) {
  return at::tensor(values, at::kLong).to(device);
}

// Rows of a search whose caches have one length.
struct RowGroup {
  std::vector<int64_t> rows;  // of the search
  std::vector<KeyValueCache> caches;
  at::Tensor padding;  // (N): columns before the tokens of each row; undefined if there are none
  at::Tensor ids;      // (N, T), all so far, of rows that may be computed anew
};

// Decodes with the module itself. Rows of one length are a group if the frequencies depend on it;
// otherwise there is one group, with padding before shorter prompts.
class ModuleDecoder : public StepModel {
 public:
  ModuleDecoder(DecoderImpl& model, const SearchPlan& plan)
      : model_(model),
        plan_(plan),
        are_apart_(depends_on_length(model.options.model())),
        restart_(are_apart_ ? model.options.restart_length() : std::nullopt) {}

  torch::Tensor read_prompts() override {
    std::map<int64_t, std::vector<int64_t>> by_length;
    for (int64_t i = 0; i < plan_.sources; ++i)
      by_length[are_apart_ ? length_of(i) : 0].push_back(i);
    std::vector<at::Tensor> logits;
    for (const auto& [length, prompts] : by_length) {
      groups_.emplace_back();
      logits.push_back(read(prompts, groups_.back()));
    }
    return in_order(logits);
  }

  torch::Tensor step(const torch::Tensor& tokens) override {
    std::vector<at::Tensor> logits;
    for (RowGroup& group : groups_) {
      const bool is_all = groups_.size() == 1;
      const at::Tensor own =
          is_all ? tokens : tokens.index_select(0, numbers(group.rows, tokens.device()));
      logits.push_back(next(group, own));
    }
    return in_order(logits);
  }

  void select(const torch::Tensor& rows) override {
    std::vector<RowGroup> left;
    const auto* const from = rows.const_data_ptr<int64_t>();
    for (RowGroup& group : groups_) {
      std::vector<int64_t> kept, own;  // the new rows, and what they are in the group
      for (int64_t row = 0; row < rows.size(0); ++row) {
        const auto place = std::lower_bound(group.rows.begin(), group.rows.end(), from[row]);
        if (place == group.rows.end() || *place != from[row]) continue;
        kept.push_back(row);
        own.push_back(place - group.rows.begin());
      }
      if (kept.empty()) continue;
      const at::Tensor index = numbers(own, device());
      for (KeyValueCache& cache : group.caches) cache.select(index);
      if (group.padding.defined()) group.padding = group.padding.index_select(0, index);
      if (group.ids.defined()) group.ids = group.ids.index_select(0, index);
      group.rows = std::move(kept);
      left.push_back(std::move(group));
    }
    groups_ = std::move(left);
  }

  void check_unchanged() const override { check_eval_mode("generate", model_); }

  at::Device device() const { return model_.model->embeddings->tokens->weight.device(); }

 private:
  int64_t length_of(int64_t prompt) const {
    return static_cast<int64_t>(plan_.prefixes[static_cast<std::size_t>(prompt)].size());
  }

  // Reads prompts, each once, and makes the rows of all of them; returns their logits.
  at::Tensor read(const std::vector<int64_t>& prompts, RowGroup& group) {
    int64_t longest = 0;
    for (const int64_t prompt : prompts) longest = std::max(longest, length_of(prompt));
    const auto count = static_cast<int64_t>(prompts.size());
    const at::Tensor ids = at::zeros({count, longest}, at::kLong);
    std::vector<int64_t> before, repeated;
    for (int64_t i = 0; i < count; ++i) {
      const auto& tokens = plan_.prefixes[static_cast<std::size_t>(prompts[i])];
      before.push_back(longest - length_of(prompts[i]));
      std::copy(tokens.begin(), tokens.end(), ids.data_ptr<int64_t>() + i * longest + before[i]);
      for (int64_t row = 0; row < plan_.rows_per_source; ++row) {
        repeated.push_back(i);
        group.rows.push_back(prompts[i] * plan_.rows_per_source + row);
      }
    }
    const bool is_padded =
        std::any_of(before.begin(), before.end(), [](int64_t n) { return n > 0; });
    if (is_padded) group.padding = numbers(before, device());
    const at::Tensor logits = start(group, ids.to(device()));
    if (plan_.rows_per_source == 1) return logits;
    const at::Tensor index = numbers(repeated, device());
    for (KeyValueCache& cache : group.caches) cache = cache.repeated(index);
    if (is_padded) group.padding = group.padding.index_select(0, index);
    if (group.ids.defined()) group.ids = group.ids.index_select(0, index);
    return logits.index_select(0, index);
  }

  // Computes all tokens of a group's rows; returns the logits after the last.
  at::Tensor start(RowGroup& group, const at::Tensor& ids) {
    group.caches = model_.make_caches(ids.size(0), plan_.longest_prefix + plan_.max_new_tokens - 1);
    if (restart_) group.ids = ids;
    return run(group, ids);
  }

  at::Tensor next(RowGroup& group, const at::Tensor& tokens) {
    if (!restart_) return run(group, tokens);
    const at::Tensor ids = at::cat({group.ids, tokens}, 1);
    if (ids.size(1) == *restart_) return start(group, ids);
    group.ids = ids;
    return run(group, tokens);
  }

  at::Tensor run(RowGroup& group, const at::Tensor& ids) {
    DecoderInputs inputs = DecoderInputs().last_logits_only(true);
    if (group.padding.defined()) {
      const int64_t all = group.caches.front().length() + ids.size(1);
      const at::Tensor columns = at::arange(all, group.padding.options());
      inputs.attention_mask(columns.unsqueeze(0) >= group.padding.unsqueeze(1));
    }
    return model_.step(ids, group.caches, inputs).logits.select(1, 0);
  }

  // The logits of all groups, in the order of the search's rows.
  at::Tensor in_order(const std::vector<at::Tensor>& logits) const {
    if (logits.size() == 1) return logits.front();
    std::vector<int64_t> place;
    for (const RowGroup& group : groups_)
      place.insert(place.end(), group.rows.begin(), group.rows.end());
    std::vector<int64_t> order(place.size());
    for (std::size_t i = 0; i < place.size(); ++i)
      order[static_cast<std::size_t>(place[i])] = static_cast<int64_t>(i);
    return at::cat(logits).index_select(0, numbers(order, device()));
  }

  DecoderImpl& model_;
  const SearchPlan& plan_;
  const bool are_apart_;  // rows of different lengths
  const std::optional<int64_t> restart_;
  std::vector<RowGroup> groups_;
};

}  // namespace

SearchPlan plan_of_prompts(const DecoderOptions& options, const GenerateOptions& search,
                           const Lists& prompts) {
  const int64_t most = most_tokens(options);
  return plan_prompts(search, prompts, options.model().embeddings()->vocab_size(),
                      std::min(options.max_positions().value_or(most), most), most);
}

void check_texts(const DecoderOptions& options, const Lists& texts) {
  const int64_t vocab = options.model().embeddings()->vocab_size(), most = most_tokens(options);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto length = static_cast<int64_t>(texts[i].size());
    TORCH_CHECK_VALUE(length > 0, "[score] text ", i, " must have a token. Got no token");
    TORCH_CHECK_VALUE(length - 1 <= most, "[score] text ", i, " must have at most the model's ",
                      most, " positions and one token. Got ", length);
    for (const int64_t token : texts[i])
      TORCH_CHECK_VALUE(0 <= token && token < vocab, "[score] the tokens of text ", i,
                        " must lie in [0, ", vocab, "). Got ", token);
  }
}

std::vector<std::vector<Hypothesis>> generate(DecoderImpl& model, const Lists& prompts,
                                              const GenerateOptions& options) {
  const auto held = model.weak_from_this().lock();  // a callback may drop the caller's holder
  check_eval_mode("generate", model);
  const SearchPlan plan = plan_of_prompts(model.options, options, prompts);
  const torch::NoGradGuard no_grad;
  if (plan.sources == 0) return {};
  ModuleDecoder decoder(model, plan);
  return search(decoder, plan, decoder.device());
}

std::vector<std::vector<Hypothesis>> generate(const Decoder& model, const Lists& prompts,
                                              const GenerateOptions& options) {
  TORCH_CHECK_VALUE(!model.is_empty(), "[generate] the model must not be an empty holder");
  return generate(*model.ptr(), prompts, options);
}

std::vector<std::vector<double>> score(DecoderImpl& model, const Lists& texts) {
  check_eval_mode("score", model);
  check_texts(model.options, texts);
  const torch::NoGradGuard no_grad;
  std::vector<int64_t> counts;
  for (const auto& text : texts) counts.push_back(static_cast<int64_t>(text.size()) - 1);
  const at::Tensor lengths = at::tensor(counts, at::kLong).clamp_min(1).unsqueeze(1);
  const auto device = model.model->embeddings->tokens->weight.device();
  return next_log_probabilities(texts, device, [&](const torch::Tensor& ids) {
    const at::Tensor mask = at::arange(ids.size(1), at::kLong).unsqueeze(0) < lengths;
    return model.forward(ids, DecoderInputs().attention_mask(mask.to(device))).logits.contiguous();
  });
}

std::vector<std::vector<double>> score(const Decoder& model, const Lists& texts) {
  TORCH_CHECK_VALUE(!model.is_empty(), "[score] the model must not be an empty holder");
  return score(*model.ptr(), texts);
}

}  // namespace posenc
