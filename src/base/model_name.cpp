#include "base/model_name.h"

#include <algorithm>
#include <cctype>

#include "base/platform/file.h"

namespace posenc::base {
namespace {

// `bert-base-uncased` or `sentence-transformers/all-MiniLM-L6-v2`.
bool may_be_on_hub(const std::string& name) {
  const auto is_part_of_name = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '/';
  };
  return !name.empty() && std::isalnum(static_cast<unsigned char>(name.front())) != 0 &&
         name.back() != '/' && std::count(name.begin(), name.end(), '/') <= 1 &&
         std::all_of(name.begin(), name.end(), is_part_of_name);
}

}  // namespace

std::string how_to_get_model(const std::string& path) {
  if (platform::may_exist(path)) return "";
  if (!may_be_on_hub(path))
    return "`hf download MODEL --local-dir FOLDER` or save_pretrained() in Python makes one";
  const std::string folder = path.substr(path.rfind('/') + 1);
  return "if it is a model's name on Hugging Face, `hf download " + path + " --local-dir " +
         folder + "` makes the folder " + folder;
}

}  // namespace posenc::base
