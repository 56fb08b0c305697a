// The tokens of a frozen decoder, computed beside those before them.

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "inference/rows/frozen_call.h"
#include "models/decoder/parts.h"
#include "models/frozen/decoder_parts.h"

namespace posenc {
namespace inference {
namespace {

// What a call needs besides the weights and the cache: 48 MB.
constexpr int64_t kMostFloats = int64_t{12} << 20;
constexpr int64_t kFewestRows = 256;

int64_t most_rows(const FrozenDecoderParts& model) {
  const TransformerLayerOptions& layer = model.options.model().encoder().layer();
  int64_t widest = layer.d_model();
  for (const CachedAttention& one : model.needs.attentions)
    widest = std::max(widest, one.sizes.width() + one.sizes.query_width());
  return std::max(kFewestRows, kMostFloats / (3 * layer.d_model() + widest));
}

// Whether the rotations of a row that has `count` tokens in all are those of its first `some`.
bool begins_alike(const CacheNeeds& needs, int64_t some, int64_t count) {
  return std::all_of(needs.switches.begin(), needs.switches.end(), [&](const LengthSwitch& one) {
    return static_cast<double>(count) <= one.length ||
           (one.is_once && static_cast<double>(some) > one.length);
  });
}

void compute(const FrozenDecoderParts& model, TokenCache& cache,
             const std::vector<NextTokens>& part, Rows used, UseRows use) {
  std::vector<int64_t> rows, lengths, past, last;
  int64_t count = 0;
  for (const NextTokens& one : part) {
    rows.push_back(one.row);
    lengths.push_back(one.count);
    past.push_back(cache.length(one.row));
    count += one.count;
    last.push_back(count - 1);
  }
  const Packing packing(lengths, std::move(past));
  const at::Tensor ids = at::empty({count}, at::kLong);
  auto* to = ids.data_ptr<int64_t>();
  for (const NextTokens& one : part) to = std::copy_n(one.ids, one.count, to);
  cache.begin(packing, rows);
  use(part, causal_rows(model.model, ids, packing, &cache, /*wants_outputs=*/false,
                        used == Rows::Last && count > packing.batch ? &last : nullptr)
                .hidden);
}

}  // namespace

void append_tokens(const FrozenDecoderParts& model, TokenCache& cache,
                   const std::vector<NextTokens>& tokens, Rows rows, UseRows use, int64_t most) {
  if (most == 0) most = most_rows(model);
  std::vector<NextTokens> part;
  int64_t room = most;
  const auto flush = [&] {
    if (!part.empty()) compute(model, cache, part, rows, use);
    part.clear();
    room = most;
  };
  for (NextTokens next : tokens) {
    const int64_t before = cache.length(next.row);
    const bool is_whole = !begins_alike(model.needs, before + 1, before + next.count);
    while (next.count > 0) {
      if (room == 0 || (next.count > room && (is_whole || next.count <= most))) flush();
      const int64_t count = is_whole ? next.count : std::min(next.count, room);
      part.push_back({next.row, next.ids, count});
      next.ids += count;
      next.count -= count;
      room = std::max<int64_t>(0, room - count);
      if (next.count > 0) flush();
    }
  }
  flush();
}

namespace {

// Computes the tokens, and writes the row of the last one of each to that of its row in the cache.
void append_for_last(const FrozenDecoderParts& model, TokenCache& cache,
                     const std::vector<NextTokens>& tokens, const at::Tensor& last) {
  const int64_t width = last.size(1);
  auto* const to = last.data_ptr<float>();
  append_tokens(model, cache, tokens, Rows::Last,
                [&](const std::vector<NextTokens>& part, const at::Tensor& hidden) {
                  const auto* from = hidden.const_data_ptr<float>();
                  for (const NextTokens& one : part) {
                    from += one.count * width;
                    std::copy_n(from - width, width, to + one.row * width);
                  }
                });
}

// The tokens of a text that are not in `beginning`, whose own the row of the cache then has.
NextTokens after_beginning(TokenCache& cache, int64_t row, const std::vector<int64_t>& text,
                           const PromptCacheParts* beginning) {
  const int64_t shared = beginning == nullptr ? 0 : beginning->tokens_of(text);
  if (shared > 0) cache.share(row, beginning->cache, shared);
  return {row, text.data() + shared, std::ssize(text) - shared};
}

}  // namespace

int64_t PromptCacheParts::tokens_of(const std::vector<int64_t>& text) const {
  if (text.size() < tokens.size() || !std::equal(tokens.begin(), tokens.end(), text.begin()))
    return 0;
  if (!begins_alike(model->needs, std::ssize(tokens), std::ssize(text))) return 0;
  return std::min(std::ssize(tokens), std::ssize(text) - 1);
}

at::Tensor last_rows(const FrozenDecoderParts& model, const std::vector<CachedText>& texts) {
  std::size_t longest = 0;
  for (const CachedText& text : texts) longest = std::max(longest, text.ids.size());
  TokenCache cache = model.make_cache(std::ssize(texts), static_cast<int64_t>(longest));
  std::vector<NextTokens> tokens;
  for (const CachedText& text : texts)
    tokens.push_back(after_beginning(cache, std::ssize(tokens), text.ids, text.beginning.get()));
  const at::Tensor last = at::empty({std::ssize(texts), model.head.in()}, at::kFloat);
  append_for_last(model, cache, tokens, last);
  return last;
}

DecoderSteps::DecoderSteps(const FrozenDecoderParts& model, const SearchPlan& plan,
                           std::shared_ptr<const PromptCacheParts> beginning)
    : model_(model),
      plan_(plan),
      beginning_(std::move(beginning)),
      restart_(model.options.restart_length()),
      cache_(model.make_cache(plan.sources * plan.rows_per_source, plan.steps)) {
  const int64_t rows = plan.sources * plan.rows_per_source;
  logits_ = at::empty({rows, model.head.out()}, at::kFloat);
  last_ = at::empty({rows, model.head.in()}, at::kFloat);
}

// Of each row's last token, in the order of the rows.
torch::Tensor DecoderSteps::last_logits(const std::vector<NextTokens>& tokens) {
  const int64_t count = std::ssize(tokens);
  append_for_last(model_, cache_, tokens, last_);
  return model_.logits(last_.narrow(0, 0, count), logits_.narrow(0, 0, count));
}

// Each prompt once, of which its rows then have the tokens.
torch::Tensor DecoderSteps::read_prompts() {
  const int64_t times = plan_.rows_per_source;
  std::vector<NextTokens> tokens;
  std::vector<int64_t> row_of_prompt;
  for (int64_t row = 0; row < plan_.sources; ++row) {
    const std::vector<int64_t>& prompt = plan_.prefixes[row];
    tokens.push_back(after_beginning(cache_, row, prompt, beginning_.get()));
    row_of_prompt.insert(row_of_prompt.end(), times, row);
    if (restart_) ids_.insert(ids_.end(), times, prompt);
  }
  const torch::Tensor logits = last_logits(tokens);
  cache_.select(row_of_prompt);
  return times == 1 ? logits : logits.index_select(0, at::tensor(row_of_prompt, at::kLong));
}

torch::Tensor DecoderSteps::step(const torch::Tensor& tokens) {
  const auto* const ids = tokens.const_data_ptr<int64_t>();
  std::vector<NextTokens> next;
  for (int64_t row = 0; row < tokens.size(0); ++row) {
    next.push_back({row, ids + row, 1});
    if (!restart_) continue;
    std::vector<int64_t>& own = ids_[row];
    own.push_back(ids[row]);
    if (std::ssize(own) != restart_) continue;
    cache_.clear(row);
    next.back() = {row, own.data(), std::ssize(own)};
  }
  return last_logits(next);
}

void DecoderSteps::select(const torch::Tensor& rows) {
  const auto* const from = rows.const_data_ptr<int64_t>();
  const std::vector<int64_t> selected(from, from + rows.size(0));
  cache_.select(selected);
  if (!restart_) return;
  std::vector<std::vector<int64_t>> ids;
  for (const int64_t row : selected) ids.push_back(ids_[row]);
  ids_ = std::move(ids);
}

}  // namespace inference

PromptCache::PromptCache(const FrozenDecoder& model, std::vector<int64_t> tokens) {
  using inference::PromptCacheParts;
  TORCH_CHECK_VALUE(!tokens.empty(), "[PromptCache] tokens must not be empty");
  const auto held = inference::FrozenDecoderAccess::parts(model);
  const inference::FrozenCall call(held->call);
  held->check_unchanged();
  const auto count = std::ssize(tokens);
  auto cache = std::make_shared<inference::TokenCache>(held->make_cache(1, count));
  inference::append_tokens(*held, *cache, {{0, tokens.data(), count}}, inference::Rows::Last,
                           [](const auto&, const at::Tensor&) {});
  parts_ = std::make_shared<const PromptCacheParts>(
      PromptCacheParts{held, std::move(tokens), std::move(cache)});
}

const std::vector<int64_t>& PromptCache::tokens() const { return parts_->tokens; }

std::vector<std::vector<Hypothesis>> generate(const FrozenDecoder& model,
                                              const std::vector<std::vector<int64_t>>& prompts,
                                              const GenerateOptions& options,
                                              const PromptCache* cache) {
  const auto held = inference::FrozenDecoderAccess::parts(model);
  const SearchPlan plan = plan_of_prompts(held->options, with_callers_threads(options), prompts);
  const auto beginning = cache == nullptr ? nullptr : inference::FrozenDecoderAccess::parts(*cache);
  TORCH_CHECK_VALUE(!beginning || beginning->model == held,
                    "[generate] cache must be of the model that continues the prompts. Got one of "
                    "another");
  held->check_unchanged();
  if (plan.sources == 0) return {};
  const inference::FrozenCall call(held->call);
  inference::DecoderSteps steps(*held, plan, beginning);
  return search(steps, plan, torch::kCPU);
}

}  // namespace posenc
