// posenc inspect: lists the contents of a weights file without running any code in it.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/digests.h"
#include "cli/error.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/text_table.h"
#include "posenc/models/inspect_folder.h"
#include "posenc/weights/manifest.h"
#include "weights/common/file.h"
#include "weights/manifest/open_weights.h"

namespace posenc::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kReadableFilesOrFolder =
    "weights: TorchScript, torch.save, safetensors or its index, or .pt2, recognised by content; "
    "or "
    "the folder of a model";

struct InspectOptions {
  std::string path;
  bool json = false;
  std::string file = "";                  // the path, or the weights in a folder
  std::optional<FolderInfo> folder = {};  // of a folder
};

// What is in the file beside its tensors. There may be entries of the same name.
Json json_of(const std::vector<ManifestEntry>& entries, const char* text) {
  auto list = Json::array();
  for (const auto& entry : entries) list.push_back({{"name", entry.name}, {text, entry.text}});
  return list;
}

void print_json(const InspectOptions& options, const io::OpenWeights& weights) {
  const Manifest& manifest = weights.manifest;
  std::vector<std::string> hashes;
  {
    Progress progress("hashing");
    hashes = digests(weights, [&](uint64_t done, uint64_t of) { progress.show(done, of); });
  }
  auto tensors = Json::array();
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    const auto& tensor = manifest.tensors[i];
    tensors.push_back({{"name", tensor.name},
                       {"dtype", dtype_name(tensor.dtype)},
                       {"shape", tensor.sizes},
                       {"sha256", hashes[i]}});
  }
  Json all = {{"file", options.file}, {"format", format_name(manifest.format)}};
  if (options.folder) {
    const auto text = [](const std::string& name) { return name.empty() ? Json() : Json(name); };
    all["model_type"] = text(options.folder->model_type);
    all["is_decoder"] = options.folder->is_decoder;
    all["is_encoder_decoder"] = options.folder->is_encoder_decoder;
    all["is_of_speech"] = options.folder->is_of_speech;
    all["embeddings_preset"] = text(options.folder->embeddings_preset);
    all["sentence_class"] = text(options.folder->sentence_class);
    all["sentence_stages"] = options.folder->sentence_stages;
  }
  all["tensors"] = std::move(tensors);
  all["unreadable"] = json_of(manifest.opaque, "reason");
  all["values"] = json_of(manifest.values, "value");
  all["more_values"] = manifest.more_values;
  all["metadata"] = manifest.metadata;
  print("{}\n", all.dump(2, ' ', false, Json::error_handler_t::replace));
}

void print_entries(const char* heading, const std::vector<ManifestEntry>& entries) {
  if (entries.empty()) return;
  std::vector<std::vector<std::string>> rows;
  for (const auto& entry : entries) rows.push_back({shown(entry.name), io::printable(entry.text)});
  print("\n{}\n{}", heading, text_table(rows, 2));
}

void print_text(const InspectOptions& options, const io::OpenWeights& weights) {
  const Manifest& manifest = weights.manifest;
  if (options.folder) {
    const auto known = [](const std::string& name) {
      return name.empty() ? "unknown" : shown(name);
    };
    print("{}: model type {}, embeddings preset {}\n", options.path,
          known(options.folder->model_type), known(options.folder->embeddings_preset));
    if (options.folder->is_decoder)
      print("{}: a decoder-only language model: posenc generate {} --text - continues prompts\n",
            options.path, options.path);
    if (options.folder->is_encoder_decoder)
      print("{}: an encoder-decoder: posenc {}\n", options.path,
            options.folder->is_of_speech ? "transcribe" : "generate or translate");
    if (const std::string& name = options.folder->sentence_class; !name.empty())
      print("{}: {} of sentence-transformers: {}\n", options.path, name,
            shown(fmt::format("{}", fmt::join(options.folder->sentence_stages, ", "))));
  }
  print("{}: {}{}, {} tensors, {}\n", options.file, format_name(manifest.format),
        manifest.class_name.empty() ? "" : " of " + shown(manifest.class_name),
        manifest.tensors.size(), size_text(weights.total_bytes()));
  std::vector<std::vector<std::string>> rows;
  for (const auto& tensor : manifest.tensors) {
    rows.push_back({shown(tensor.name), dtype_name(tensor.dtype),
                    fmt::format("({})", fmt::join(tensor.sizes, ", "))});
  }
  print("{}", text_table(rows, 2));
  print_entries("values that are not tensors", manifest.values);
  if (manifest.more_values > 0) print("  and {} more\n", manifest.more_values);
  print_entries("skipped, not dense tensors", manifest.opaque);
  std::vector<ManifestEntry> metadata;
  for (const auto& [key, value] : manifest.metadata) metadata.push_back({key, value});
  print_entries("metadata", metadata);
}

void inspect(InspectOptions options) {
  options.file = options.path;
  std::error_code unknown;
  if (std::filesystem::is_directory(options.path, unknown)) {
    options.folder = inspect_folder(options.path);
    options.file = options.folder->weights;
  }
  const auto weights =
      io::in_context("read_manifest", options.file, [&] { return io::OpenWeights(options.file); });
  options.json ? print_json(options, weights) : print_text(options, weights);
}

void add_inspect(CLI::App& app) {
  auto options = std::make_shared<InspectOptions>();
  auto* sub = app.add_subcommand(
      "inspect",
      "List the contents of a file of weights: names (the first 120 bytes of each; --json prints "
      "them in full), dtypes and shapes of tensors, what is not a tensor, and metadata; of a "
      "model's folder also its type and the preset of its embeddings. No code in the file is run.");
  sub->add_option("FILE", options->path, kReadableFilesOrFolder)->required()->check(input_path());
  sub->add_flag("--json", options->json,
                "print {file, format, tensors: [{name, dtype, shape, sha256}], unreadable: [{name, "
                "reason}], values: [{name, value}], more_values, metadata: {}}; the hash is of the "
                "contiguous little-endian bytes, and more_values counts values that are not "
                "listed. For a folder also model_type, is_decoder, is_encoder_decoder, "
                "is_of_speech, embeddings_preset, and the class and the stages of "
                "sentence-transformers");
  sub->footer(
      "Example:\n  posenc inspect --json model.pt\n  posenc inspect models/bert-base-uncased");
  sub->callback([options] { inspect(*options); });
}

const Command kInspect{5, add_inspect};

}  // namespace
}  // namespace posenc::cli
