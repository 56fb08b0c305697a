#pragma once

#include <nlohmann/json.hpp>

#include "tokenizers/folder/folder.h"

/// What a folder says, in the words of tokenizer.json and of transformers' attributes.
nlohmann::json folder_json(const posenc::text::FolderTokenizer& folder);
