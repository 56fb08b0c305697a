#include "text/stream_state.h"

#include "io/base/text.h"
#include "posenc/text/error.h"
#include "text/decoders/lossy_utf8.h"

namespace posenc::text {
namespace {

bool is_incomplete(const std::string& text) {
  return text.size() >= kReplacement.size() &&
         text.compare(text.size() - kReplacement.size(), kReplacement.size(), kReplacement) == 0;
}

}  // namespace

std::optional<std::string> StreamState::step(int64_t id) {
  if (prefix_.empty() && !ids_.empty()) {  // ids without a text of their own, such as skipped ones
    std::string text = decode_(ids_);
    if (!is_incomplete(text)) {
      prefix_ = std::move(text);
      prefix_count_ = ids_.size();
    }
  }
  ids_.push_back(id);
  std::string text;
  try {
    text = decode_(ids_);
  } catch (...) {
    ids_.pop_back();
    throw;
  }
  if (text.size() <= prefix_.size() || is_incomplete(text)) return std::nullopt;
  if (text.compare(0, prefix_.size(), prefix_) != 0) {
    ids_.pop_back();
    throw TokenizerError("decoder: must keep the text " + io::in_quotes(prefix_) +
                         " when a token follows. Got " + io::in_quotes(text));
  }
  std::string added = text.substr(prefix_.size());
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(prefix_count_));
  prefix_count_ = ids_.size();
  prefix_ = decode_(ids_);
  return added;
}

}  // namespace posenc::text
