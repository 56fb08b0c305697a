#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "posenc/models/cross_encoder_folder.h"
#include "posenc/tokenizers/tensors.h"
#include "text/chat_template/program.h"

namespace posenc::text {

/// Puts queries and documents into a chat template, as messages with the roles `query` and
/// `document`, and a prompt as one with the role `system` before them.
class ChatPairs {
 public:
  /// Throws c10::ValueError for a template that does not write both of a pair.
  ChatPairs(const sentence::ChatTemplate& chat, const Tokenizer& tokenizer);

  std::string render(const std::string& prompt, const std::string& query,
                     const std::string& document) const;
  /// The last tokens of all texts, which are the template's own: they are written over the last
  /// ones of a text that is cut.
  std::vector<int64_t> tail(const Tokenizer& tokenizer, const std::string& prompt) const;

 private:
  ChatTemplateParts template_;
  bool is_structured_;
};

}  // namespace posenc::text
