#include "tokenizers/pipeline/stream_state.h"

#include "base/text.h"
#include "posenc/tokenizers/error.h"
#include "tokenizers/decoders/lossy_utf8.h"

namespace posenc::text {

void StreamState::follow_end() {
  end_ = teller_ == nullptr || teller_->decoder() == nullptr ? nullptr
                                                             : teller_->decoder()->follow_end();
  if (!end_) return;
  for (const uint32_t id : ids_) end_->add(*teller_->decoded_token(id, skip_special_tokens_));
}

// Goes back to before the last id.
void StreamState::forget_last(bool was_text_empty) {
  ids_.pop_back();
  is_text_empty_ = was_text_empty;
  follow_end();
}

std::string StreamState::end() {
  std::string text = ids_.empty() ? std::string() : decode();
  if (text.starts_with(prefix_)) {
    text.erase(0, prefix_.size());
  } else {  // another id has changed the text before it, as step() would refuse: the ids alone
    ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(prefix_count_));
    text = decode();
  }
  *this = StreamState(std::move(pipeline_), skip_special_tokens_);
  return text;
}

std::optional<std::string> StreamState::step(uint32_t id) {
  const bool is_told = teller_ != nullptr;
  const auto token = is_told ? teller_->decoded_token(id, skip_special_tokens_) : std::nullopt;
  if (is_told && !token) {
    if (ids_.empty()) decode();  // which may be an error
    return std::nullopt;
  }
  const bool was_text_empty = is_text_empty_;
  if (prefix_.empty() && was_text_empty) prefix_count_ = ids_.size();
  ids_.push_back(id);
  std::string text;
  try {
    if (end_) end_->add(*token);
    if (end_ && end_->is_replacement()) {
      is_text_empty_ = false;
      return std::nullopt;
    }
    text = decode();
  } catch (...) {
    forget_last(was_text_empty);
    throw;
  }
  is_text_empty_ = text.empty();
  if (text.size() <= prefix_.size() || text.ends_with(kReplacement)) return std::nullopt;
  if (!text.starts_with(prefix_)) {
    forget_last(was_text_empty);
    throw TokenizerError("decoder: must keep the text " + io::in_quotes(prefix_) +
                         " when a token follows. Got " + io::in_quotes(text));
  }
  std::string added = text.substr(prefix_.size());
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(prefix_count_));
  prefix_count_ = ids_.size();
  prefix_ = decode();
  is_text_empty_ = prefix_.empty();
  follow_end();
  return added;
}

}  // namespace posenc::text
