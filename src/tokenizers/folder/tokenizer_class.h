#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/folder/files.h"

namespace posenc::text {

/// The class that AutoTokenizer makes of a folder, by transformers' own name of it;
/// "TokenizersBackend" takes tokenizer.json as it is. Throws TokenizerError for a folder that needs
/// code of its own.
std::string tokenizer_class_of(const FolderFiles& files, const Settings& config,
                               const Settings& tokenizer_config);

/// Why a class of transformers is not supported, as the end of a message: "X, which ..."; the name
/// alone where it is only missing.
std::string refused_class(std::string_view tokenizer_class);

/// The class that transformers has for the `model_type` of a config.json.
struct ModelTypeClass {
  std::string_view model_type, tokenizer_class;
  bool has_config;  ///< transformers knows the configuration of the type too
};
const std::vector<ModelTypeClass>& model_type_classes();

/// The types of models whose folders name a wrong class, so that the one above is taken.
const std::vector<std::string_view>& untrusted_model_types();

/// A name that transformers has, and the name of the class that it stands for.
struct ClassName {
  std::string_view name, tokenizer_class;
};
const std::vector<ClassName>& class_names();

}  // namespace posenc::text
