#include "models/frozen/frozen_file.h"

#include <ATen/ops/from_blob.h>
#include <c10/core/DefaultDtype.h>
#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/platform/mapping.h"
#include "base/xxhash64.h"
#include "core/torch_internals/parts.h"
#include "models/config/model_folder.h"
#include "models/frozen/options_json.h"
#include "posenc/version.h"
#include "weights/common/json.h"
#include "weights/common/tensor.h"
#include "weights/safetensors/layout.h"
#include "weights/safetensors/reader.h"

namespace posenc {
namespace {

using Code = WeightsErrorCode;
using Json = nlohmann::json;
using inference::FrozenArrays;

constexpr int kFormat = 1;
constexpr uint64_t kAlignment = 64;
constexpr uint64_t kMostSettingsText = 16'000'000;
constexpr std::size_t kLengthBytes = 8;  // of a safetensors header
constexpr const char *kFormatKey = "posenc.frozen", *kVersionKey = "posenc.version",
                     *kKindKey = "posenc.kind", *kOptionsKey = "posenc.options",
                     *kFreezeKey = "posenc.freeze", *kSettingsKey = "posenc.settings",
                     *kDigestsKey = "posenc.digests", *kHeaderDigestKey = "posenc.header_digest";
const std::string kNoDigest(16, '0');

std::string_view bytes_of(const at::Tensor& array) {
  return {static_cast<const char*>(array.const_data_ptr()), array.nbytes()};
}

// Where the digest of the header is in it.
std::size_t place_of_digest(std::string_view header) {
  const std::string before = "\"" + std::string(kHeaderDigestKey) + "\":\"";
  const auto found = header.find(before);
  const auto place = found + before.size();
  if (found == std::string_view::npos || place + kNoDigest.size() > header.size())
    throw WeightsError(Code::Corrupt,
                       "must have the digest of its header, " + std::string(kHeaderDigestKey));
  return place;
}

// The digest of each array, by threads.
std::vector<std::string> digests_of(const std::vector<at::Tensor>& arrays) {
  std::vector<std::string> digests(arrays.size());
  std::atomic<std::size_t> next = 0;  // arrays differ in size
  torch_internals::parallel_parts(0, static_cast<int64_t>(arrays.size()), 1, [&](int64_t, int64_t) {
    for (std::size_t i = next++; i < arrays.size(); i = next++)
      digests[i] = digest_of(bytes_of(arrays[i]));
  });
  return digests;
}

// --- reading ------------------------------------------------------------------------------------

// Weights that were saved into the folder later are another model.
void check_no_weights_beside(const char* caller, const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!is_weights_file(name)) continue;
    throw WeightsError(Code::Unsupported,
                       fmt::format("must hold a frozen model or weights, not both. Got {} and {}",
                                   kFrozenFile, name),
                       "freeze the model into a folder of its own")
        .in_file(folder)
        .in_function(caller);
  }
}

std::string file_of(const char* caller, const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::is_directory(path, unknown)) return path;
  std::string file = (std::filesystem::path(path) / kFrozenFile).string();
  if (io::may_exist(file)) {
    check_no_weights_beside(caller, path);
    return file;
  }
  throw WeightsError(Code::NotFound, "must hold " + std::string(kFrozenFile) + ", a frozen model",
                     "`posenc freeze` and freeze_folder() make such a folder of a model's")
      .in_file(path)
      .in_function(caller);
}

const std::string& metadata_of(const Manifest& manifest, const char* key) {
  const auto found = manifest.metadata.find(key);
  if (found == manifest.metadata.end())
    throw WeightsError(Code::Corrupt, "must have " + std::string(key) + " in its metadata");
  return found->second;
}

Json json_in(const Manifest& manifest, const char* key) {
  Json json = io::json_tree<Json>(metadata_of(manifest, key), key);
  if (!json.is_object())
    throw WeightsError(Code::Corrupt, "must have a JSON object as " + std::string(key));
  return json;
}

void check_format(const Manifest& manifest) {
  const auto found = manifest.metadata.find(kFormatKey);
  if (found == manifest.metadata.end())
    throw WeightsError(Code::UnknownFormat,
                       "must be a frozen model. It is a safetensors file without " +
                           std::string(kFormatKey) + " in its metadata",
                       "save_frozen() and `posenc freeze` write frozen models");
  if (found->second == std::to_string(kFormat)) return;
  const auto version = manifest.metadata.find(kVersionKey);
  throw WeightsError(
      Code::Unsupported,
      fmt::format("must have format {} of frozen models. Got {}, written by posenc {}", kFormat,
                  found->second,
                  version == manifest.metadata.end() ? "of no version" : version->second),
      "freeze the model again");
}

void check_header(std::string_view header) {
  std::string blank(header);
  const std::size_t place = place_of_digest(header);
  blank.replace(place, kNoDigest.size(), kNoDigest);
  const std::string_view got = header.substr(place, kNoDigest.size());
  const std::string own = digest_of(blank);
  if (got != own)
    throw WeightsError(Code::Corrupt,
                       fmt::format("must be as it was written: the digest of its header is {}. "
                                   "Got {}",
                                   got, own),
                       "copy it again, or freeze the model again");
}

// A tensor on the mapped bytes, which it keeps.
at::Tensor array_of(const std::shared_ptr<const platform::Mapping>& mapping,
                    const Manifest& manifest, const ManifestTensor& tensor) {
  const ManifestStorage& storage = manifest.storages[tensor.storage];
  const uint64_t multiple = (storage.bytes | kAlignment) & (~(storage.bytes | kAlignment) + 1);
  if (storage.offset % multiple != 0)
    throw WeightsError(Code::Corrupt, fmt::format("must begin at a multiple of {}. Got {}",
                                                  multiple, storage.offset))
        .in_tensor(tensor.name);
  auto* const data = const_cast<char*>(mapping->bytes().data()) + storage.offset;
  return at::from_blob(
      data, tensor.sizes, [mapping](void*) {}, at::TensorOptions(io::scalar_type(tensor.dtype)));
}

void check_digests(const Manifest& manifest, const FrozenArrays& arrays) {
  const Json expected = json_in(manifest, kDigestsKey);
  std::vector<at::Tensor> all;
  for (const auto& [name, array] : arrays) all.push_back(array);
  const auto digests = digests_of(all);
  std::size_t i = 0;
  for (const auto& [name, array] : arrays) {
    const Json own = expected.value(name, Json());
    if (own != digests[i])
      throw WeightsError(
          Code::Corrupt,
          fmt::format("must be as it was written: its digest is {}. Got {}",
                      own.is_string() ? own.get<std::string>() : "missing", digests[i]),
          "copy the file again, or freeze the model again")
          .in_tensor(name);
    ++i;
  }
}

void check_settings(const Manifest& manifest, const std::string& folder) {
  const Json settings = json_in(manifest, kSettingsKey);
  for (const auto& [name, digest] : settings.items()) {
    const std::string path = (std::filesystem::path(folder) / name).string();
    const std::string own = digest_of(io::read_text(path, kMostSettingsText));
    if (digest == own) continue;
    throw WeightsError(Code::Corrupt,
                       fmt::format("must have the {} beside it that it was frozen with, of digest "
                                   "{}. Got {}",
                                   name, digest.dump(-1, ' ', true), own),
                       "freeze the model again");
  }
}

// `folder`: that of the settings; empty for a file alone.
FrozenContents read_frozen(const std::string& path, const std::string& folder,
                           const LoadFrozenOptions& options) {
  const auto mapping = std::make_shared<const platform::Mapping>(path);
  const Manifest manifest = io::read_safetensors(io::InputFile::of_bytes(mapping->bytes()));
  check_format(manifest);
  const auto length = io::little_endian<uint64_t>(mapping->bytes(), 0);
  check_header(mapping->bytes().substr(0, kLengthBytes + length));
  if (!manifest.opaque.empty())
    throw WeightsError(Code::UnexpectedKeys, "must have a dtype of a frozen model")
        .in_tensor(manifest.opaque.front().name);
  FrozenContents contents;
  for (const auto& tensor : manifest.tensors)
    contents.arrays.emplace(tensor.name, array_of(mapping, manifest, tensor));
  if (options.check()) check_digests(manifest, contents.arrays);
  if (!folder.empty()) check_settings(manifest, folder);
  contents.kind = metadata_of(manifest, kKindKey);
  contents.options = json_in(manifest, kOptionsKey);
  contents.freeze = options_from<FreezeOptions>(json_in(manifest, kFreezeKey));
  if (options.threads()) contents.freeze.threads(*options.threads());
  return contents;
}

}  // namespace

std::string digest_of(std::string_view bytes) {
  return fmt::format("{:016x}", base::xxhash64(bytes));
}

void check_default_dtype(const char* caller) {
  const auto dtype = c10::get_default_dtype_as_scalartype();
  TORCH_CHECK_TYPE(dtype == at::kFloat, "[", caller,
                   "] the default dtype, in which modules are made, must be float32. Got ", dtype);
}

void with_frozen_file(const char* caller, const std::string& path, const LoadFrozenOptions& options,
                      const std::function<void(const FrozenContents&)>& use) {
  const int64_t threads = options.threads().value_or(0);
  TORCH_CHECK_VALUE(threads >= 0, "[", caller,
                    "] threads must be positive, or 0 for those of LibTorch. Got ", threads);
  check_default_dtype(caller);
  const std::string file = file_of(caller, path);
  io::in_context(caller, file, [&] {
    try {
      use(read_frozen(file, file == path ? "" : path, options));
    } catch (const WeightsError&) {
      throw;
    } catch (const c10::Error& error) {  // of options, arrays, or freeze() itself
      throw WeightsError(Code::Corrupt, "is no frozen model that this version reads: " +
                                            std::string(error.what_without_backtrace()));
    } catch (const std::exception& error) {  // such as std::bad_alloc
      throw WeightsError(
          Code::Corrupt,
          std::string("is no frozen model that this version reads: ") + error.what());
    }
  });
}

void write_frozen(const FrozenContents& contents, io::AtomicFile& file) {
  std::vector<io::SafetensorsEntry> entries;
  std::vector<at::Tensor> arrays;
  for (const auto& [name, array] : contents.arrays) {
    entries.push_back({name, io::writable_dtype(name, array), array.sizes().vec()});
    arrays.push_back(io::contiguous_on_cpu(array));
  }
  const auto all = digests_of(arrays);
  Json digests = Json::object();
  for (std::size_t i = 0; i < entries.size(); ++i) digests[entries[i].name] = all[i];
  io::SafetensorsLayout layout =
      io::lay_out_safetensors(entries,
                              {{kFormatKey, std::to_string(kFormat)},
                               {kVersionKey, version()},
                               {kKindKey, contents.kind},
                               {kOptionsKey, contents.options.dump()},
                               {kFreezeKey, json_of(contents.freeze).dump()},
                               {kSettingsKey, Json(contents.settings).dump()},
                               {kDigestsKey, digests.dump()},
                               {kHeaderDigestKey, kNoDigest}},
                              kAlignment);
  const std::size_t place = place_of_digest(layout.header);
  layout.header.replace(place, kNoDigest.size(), digest_of(layout.header));
  file.write(layout.header.data(), layout.header.size());
  for (const std::size_t i : layout.order) {
    const std::string_view bytes = bytes_of(arrays[i]);
    file.write(bytes.data(), bytes.size());
  }
}

}  // namespace posenc
