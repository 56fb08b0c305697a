#pragma once

#include <string>

#include "tokenizers/folder/files.h"

namespace posenc::text {

/// The class that AutoTokenizer makes of a folder, by transformers' own name of it;
/// "TokenizersBackend" takes tokenizer.json as it is. Throws TokenizerError for a folder that needs
/// code of its own.
std::string tokenizer_class_of(const FolderFiles& files, const Settings& config,
                               const Settings& tokenizer_config);

}  // namespace posenc::text
