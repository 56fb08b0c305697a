#include "tokenizers/folder/folder.h"

#include <string_view>
#include <utility>

#include "posenc/tokenizers/error.h"
#include "tokenizers/folder/classes.h"
#include "tokenizers/folder/python/constructors.h"
#include "tokenizers/folder/tokenizer_class.h"

namespace posenc::text {
namespace {

// A folder may have several, such as tokenizer.4.0.0.json, of which transformers takes the newest
// that is not newer than itself.
std::string name_of_tokenizer_file(const Settings& tokenizer_config) {
  const auto files = tokenizer_config.find("fast_tokenizer_files");
  if (files == tokenizer_config.end()) return "tokenizer.json";
  for (const Settings& file : *files) {
    if (file != "tokenizer.json") {
      refuse("fast_tokenizer_files", "be absent or name tokenizer.json only", shown(*files));
    }
  }
  return "tokenizer.json";
}

// The added tokens of a tokenizer.json, of which a class in Python reads nothing else.
std::optional<std::vector<AddedToken>> added_tokens_of(const FolderFiles& files,
                                                       const std::string& name) {
  if (!files.has(name)) return std::nullopt;
  try {
    return read_added_tokens(files.read(name));
  } catch (const TokenizerError& error) {
    throw error.in_file(files.path(name));
  }
}

}  // namespace

FolderTokenizer read_folder(const FolderFiles& files) {
  const Settings config = files.settings("config.json");
  const Settings tokenizer_config = files.settings("tokenizer_config.json");
  const std::string name = tokenizer_class_of(files, config, tokenizer_config);
  if (const PythonConstructor construct = python_constructor(name)) {
    const std::optional<std::vector<AddedToken>> tokens =
        added_tokens_of(files, name_of_tokenizer_file(tokenizer_config));
    PythonBuilder builder(files, tokenizer_config, tokens ? &*tokens : nullptr, name);
    construct(builder);
    return std::move(builder).result();
  }
  if (!has_constructor(name))
    refuse("tokenizer_class", "be one that posenc has", refused_class(name));

  std::optional<Definition> file;
  const std::string file_name = name_of_tokenizer_file(tokenizer_config);
  if (files.has(file_name)) {
    try {
      file = read_definition(files.read(file_name));
    } catch (const TokenizerError& error) {
      throw error.in_file(files.path(file_name));
    }
  }
  ClassBuilder builder(files, tokenizer_config, std::move(file), name);
  construct(builder);
  return std::move(builder).result();
}

}  // namespace posenc::text
