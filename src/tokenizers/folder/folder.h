#pragma once

#include <optional>
#include <string>

#include "tokenizers/definition/definition.h"
#include "tokenizers/folder/files.h"
#include "tokenizers/pipeline/settings.h"
#include "tokenizers/python/python_parts.h"

namespace posenc::text {

/// The tokenizer of a folder.
struct FolderTokenizer {
  Definition definition;  ///< unless its class is one in Python
  std::optional<PythonParts> python;
  FolderSettings settings;
};

/// The tokenizer that transformers 5.23's AutoTokenizer makes of a folder. Throws TokenizerError.
FolderTokenizer read_folder(const FolderFiles& files);

}  // namespace posenc::text
