#include "text/stream_state.h"

#include "io/base/text.h"
#include "posenc/text/error.h"
#include "text/decoders/lossy_utf8.h"

namespace posenc::text {

StreamState::Hints StreamState::hints(const Machine& machine, bool skip_special_tokens) {
  Hints hints;
  hints.token = [&machine, skip_special_tokens](int64_t id) {
    return machine.decoded_token(static_cast<uint32_t>(id), skip_special_tokens);
  };
  if (const Decoder* decoder = machine.decoder())
    hints.follow_end = [decoder] { return decoder->follow_end(); };
  return hints;
}

StreamState::StreamState(Decode decode, Hints hints)
    : decode_(std::move(decode)), hints_(std::move(hints)) {
  follow_end();
}

void StreamState::follow_end() {
  end_ = hints_.follow_end && hints_.token ? hints_.follow_end() : nullptr;
  if (!end_) return;
  for (const int64_t id : ids_) end_->add(*hints_.token(id));
}

// Goes back to before the last id.
void StreamState::forget_last(bool was_text_empty) {
  ids_.pop_back();
  is_text_empty_ = was_text_empty;
  follow_end();
}

std::optional<std::string> StreamState::step(int64_t id) {
  std::optional<std::string_view> token;
  if (hints_.token && !(token = hints_.token(id))) {
    if (ids_.empty()) decode_(ids_);  // which may be an error
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
    text = decode_(ids_);
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
  prefix_ = decode_(ids_);
  is_text_empty_ = prefix_.empty();
  follow_end();
  return added;
}

}  // namespace posenc::text
