#include "cli/output.h"

#include <exception>
#include <filesystem>

#include "cli/error.h"
#include "models/config/model_folder.h"
#include "posenc/models/inspect_folder.h"
#include "posenc/weights/manifest.h"
#include "weights/common/file.h"

namespace posenc::cli {
namespace {

namespace fs = std::filesystem;

// The input itself and what belongs to it. The command itself reports what cannot be read.
std::vector<std::string> files_of(const std::string& input) {
  std::vector<std::string> files = {input};
  std::error_code unknown;
  try {
    if (fs::is_directory(input, unknown)) {
      for (const auto& entry : fs::directory_iterator(input, unknown)) {
        if (entry.path().extension() == ".json") files.push_back(entry.path().string());
      }
      files.push_back(inspect_folder(input).weights);
    }
    const auto parts = read_manifest(files.back()).files;
    files.insert(files.end(), parts.begin(), parts.end());
  } catch (const std::exception&) {  // no weights, so nothing belongs to it
  }
  return files;
}

// The folder of a model; that around it, if it is a stage of a sentence-transformers model.
fs::path whole_folder(const fs::path& folder) {
  std::error_code unknown;
  const fs::path own = fs::canonical(folder, unknown), around = own.parent_path();
  return fs::exists(around / "modules.json", unknown) ? around : own;
}

// Nothing in a model's folder is replaced, and it does not get other weights.
void refuse_part_of(const std::string& folder, const std::string& output) {
  std::error_code unknown;
  if (!fs::is_directory(folder, unknown)) return;
  const fs::path absolute = fs::absolute(output, unknown);
  const fs::path path = fs::weakly_canonical(absolute.parent_path(), unknown) / absolute.filename();
  const fs::path within = path.lexically_relative(whole_folder(folder));
  if (within.empty() || *within.begin() == "..") return;
  if (fs::exists(path, unknown)) {
    fail("{}: the output must not be a file of the model's folder; choose another name", output);
  }
  if (is_weights_file(path.filename().string())) {
    fail(
        "{}: the output must not have a name that stands for the weights of a model in the folder "
        "of one that is read; choose another name",
        output);
  }
}

}  // namespace

void check_output(const std::string& output, const std::vector<std::string>& inputs) {
  std::error_code unknown;
  for (const auto& input : inputs) {
    if (input.empty() || !fs::exists(output, unknown)) continue;
    for (const auto& file : files_of(input)) {
      if (!fs::equivalent(output, file, unknown)) continue;
      fail("{}: the output must not be a file that is read{}; choose another name", output,
           file == output ? "" : ". Got " + file);
    }
  }
  for (const auto& input : inputs) refuse_part_of(input, output);
  try {
    const io::AtomicFile unwritten(output);  // leaves nothing
  } catch (const platform::FileError& error) {
    const std::string& remedy = error.remedy();
    fail("{}: {}{}", output, error.what(), remedy.empty() ? "" : "; " + remedy);
  }
}

}  // namespace posenc::cli
