#include "tokenizers/pipeline/tokenizer_pipeline.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace posenc::text {

// What a call needs; it is kept for the next one.
struct TokenizerPipeline::Workspace {
  TextTokens texts[2];
  std::vector<Windows> windows;
  std::vector<std::size_t> lengths;
  std::unique_ptr<Scratch> scratch;
};

TokenizerPipeline::TokenizerPipeline(Definition definition, bool split_special_tokens)
    : definition_(std::move(definition)),
      model_(make_model(definition_)),
      normalizer_(make_normalizer(definition_.normalizer)),
      pre_tokenizer_(make_pre_tokenizer(definition_.pre_tokenizer)),
      post_processor_(definition_.post_processor),
      decoder_(make_decoder(definition_.decoder)),
      added_tokens_(definition_.added_tokens, *model_, normalizer_.get(), split_special_tokens) {
  if (!definition_.target_post_processor.is_null())
    target_post_processor_.emplace(definition_.target_post_processor);
  // The model has what it needs of these.
  definition_.model.vocab = {};
  definition_.model.merges = {};
  definition_.model.scores = {};
  definition_.model.exact_scores = {};
  definition_.merge_strings.reset();
}

TokenizerPipeline::~TokenizerPipeline() = default;

void TokenizerPipeline::encode(std::string_view text, std::optional<std::string_view> pair,
                               const EncodeRequest& request, std::size_t index,
                               EncodedRows& rows) const {
  require_utf8(text, pair, index);
  const PostProcessor& post_processor =
      request.target && target_post_processor_ ? *target_post_processor_ : post_processor_;
  const Plan& plan = post_processor.plan(pair.has_value(), request.add_special_tokens);
  Requested requested = request.requested;
  requested.tokens = requested.tokens || (requested.offsets && post_processor.trims());
  Workspaces<Workspace>::Lease lease(workspaces_, [this] {
    auto made = std::make_unique<Workspace>();
    made->scratch = model_->scratch();
    return made;
  });
  Workspace& work = *lease;
  const TextTokens::Steps steps{added_tokens_, normalizer_.get(), pre_tokenizer_.get(), *model_};
  work.texts[0].encode(text, steps, requested, *work.scratch);
  work.lengths = {work.texts[0].ids.size()};
  if (pair) {
    work.texts[1].encode(*pair, steps, requested, *work.scratch);
    work.lengths.push_back(work.texts[1].ids.size());
  }
  TruncationRule rule;
  rule.max_length = std::numeric_limits<std::size_t>::max();
  if (request.truncation)
    rule =
        checked(*request.truncation, post_processor, pair.has_value(), request.add_special_tokens);
  truncate(rule, work.lengths, work.windows);
  add_rows(plan, work.texts, work.windows, request.overflow, request.requested, index, rows);
}

// The rule for the text without special tokens.
TruncationRule TokenizerPipeline::checked(TruncationRule rule, const PostProcessor& post_processor,
                                          bool is_pair, bool add_special_tokens) const {
  // The package asks this of every rule, with the special tokens of one text, unless these alone
  // are more than max_length.
  const std::size_t added = post_processor.added_tokens(false);
  base::throw_unless(rule.max_length < added || rule.stride <= rule.max_length - added,
                     "[Tokenizer] `stride` must be less than the ", rule.max_length - added,
                     " tokens that `max_length` leaves for the text. Got ", rule.stride);
  if (add_special_tokens)
    rule.max_length = room_for_text(rule, post_processor.added_tokens(is_pair));
  return rule;
}

std::string TokenizerPipeline::decode(const std::vector<uint32_t>& ids,
                                      bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const uint32_t id : ids) {
    if (const auto token = decoded_token(id, skip_special_tokens)) tokens.emplace_back(*token);
  }
  return join(std::move(tokens));
}

std::string TokenizerPipeline::join(std::vector<std::string> tokens) const {
  if (decoder_) decoder_->decode(tokens);
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0 && !decoder_) text += ' ';
    text += tokens[i];
  }
  return text;
}

std::optional<uint32_t> TokenizerPipeline::token_to_id(std::string_view token) const {
  const auto added = added_tokens_.token_to_id(token);
  return added ? added : model_->token_to_id(token);
}

std::optional<std::string> TokenizerPipeline::id_to_token(uint32_t id) const {
  const auto token = spelling_of(id);
  return token ? std::optional<std::string>(*token) : std::nullopt;
}

std::optional<std::string_view> TokenizerPipeline::spelling_of(uint32_t id) const {
  const auto added = added_tokens_.id_to_token(id);
  return added ? added : model_->id_to_token(id);
}

std::optional<std::string_view> TokenizerPipeline::decoded_token(uint32_t id,
                                                                 bool skip_special_tokens) const {
  const auto token = spelling_of(id);
  return token && skip_special_tokens && added_tokens_.is_special(*token) ? std::nullopt : token;
}

}  // namespace posenc::text
