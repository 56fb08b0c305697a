#pragma once

#include <string>
#include <vector>

/// The languages of translation models, as transformers 5.23 lists them, in the order of their ids.
namespace posenc::text {

const std::vector<std::string>& mbart_codes();
const std::vector<std::string>& mbart50_codes();

struct WhisperLanguage {
  std::string code, name;
};
const std::vector<WhisperLanguage>& whisper_languages();
/// Further names of some of them.
const std::vector<WhisperLanguage>& other_whisper_names();

}  // namespace posenc::text
