#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "speech/sound/rate.h"
#include "speech/sound/sound_file.h"

namespace posenc::sound {
namespace {

using io::InputFile;
using io::little_endian;
using Code = WeightsErrorCode;

constexpr uint64_t kHead = 8;  // of a chunk: its id and its size

// How files begin that are no RIFF.
constexpr std::pair<std::string_view, const char*> kContainers[] = {
    {"RF64", "RF64"},    {"BW64", "BW64"},    {"RIFX", "RIFX, big-endian"},
    {"fLaC", "FLAC"},    {"OggS", "Ogg"},     {"FORM", "AIFF"},
    {"ID3", "MP3"},      {"\xff\xfb", "MP3"}, {"\xff\xf3", "MP3"},
    {"\xff\xf2", "MP3"}, {"\xff\xf1", "AAC"}, {"caff", "CAF"},
    {".snd", "AU"}};

constexpr uint32_t kPcm = 1, kFloat = 3, kExtensible = 0xFFFE;
constexpr std::pair<uint32_t, const char*> kTags[] = {{2, "ADPCM of Microsoft"},
                                                      {6, "A-law"},
                                                      {7, "mu-law"},
                                                      {0x11, "ADPCM of IMA"},
                                                      {0x31, "GSM 6.10"},
                                                      {0x50, "MPEG"},
                                                      {0x55, "MP3"},
                                                      {0x161, "WMA"},
                                                      {0xFF, "AAC"},
                                                      {0x40, "G.721 ADPCM"},
                                                      {kPcm, "PCM"},
                                                      {kFloat, "floating-point"}};

constexpr const char* kFormats =
    "must have samples in a format that is read, PCM of 8, 16, 24 or 32 bits or floating-point "
    "numbers of 32 or 64. Got ";

void check_container(const InputFile& file) {
  const std::string begin =
      file.read(0, static_cast<std::size_t>(std::min<uint64_t>(12, file.size())));
  if (begin.starts_with("RIFF") && begin.substr(std::min<std::size_t>(8, begin.size())) == "WAVE")
    return;
  for (const auto& [magic, name] : kContainers) {
    if (begin.starts_with(magic))
      throw WeightsError(Code::Unsupported, std::string("must be in the format WAV. Got ") + name);
  }
  throw WeightsError(Code::UnknownFormat,
                     "must be in the format WAV, RIFF with WAVE. Got " + io::in_quotes(begin));
}

struct Format {
  SampleType type;
  uint32_t channels, rate;
};

std::optional<SampleType> sample_type(uint32_t tag, uint32_t bits) {
  using enum SampleType;
  if (tag == kPcm) {
    return bits == 8    ? std::optional(UInt8)
           : bits == 16 ? std::optional(Int16)
           : bits == 24 ? std::optional(Int24)
           : bits == 32 ? std::optional(Int32)
                        : std::nullopt;
  }
  if (tag != kFloat) return std::nullopt;
  return bits == 32 ? std::optional(Float32) : bits == 64 ? std::optional(Float64) : std::nullopt;
}

std::string tag_name(uint32_t tag) {
  for (const auto& [known, name] : kTags)
    if (known == tag) return name;
  return "number " + std::to_string(tag);
}

// The sub-format of WAVE_FORMAT_EXTENSIBLE: a tag, and the same 14 bytes for all that have one.
uint32_t sub_format(std::string_view chunk) {
  constexpr std::string_view kRest("\x00\x00\x00\x00\x10\x00\x80\x00\x00\xAA\x00\x38\x9B\x71", 14);
  if (chunk.size() < 40)
    throw WeightsError(Code::Corrupt,
                       "must have 40 bytes in the chunk `fmt ` of "
                       "WAVE_FORMAT_EXTENSIBLE. Got " +
                           std::to_string(chunk.size()));
  if (chunk.substr(26, 14) != kRest)
    throw WeightsError(Code::Unsupported, std::string(kFormats) + "an unknown sub-format");
  return little_endian<uint16_t>(chunk, 24);
}

Format read_format(std::string_view chunk) {
  if (chunk.size() < 16)
    throw WeightsError(Code::Corrupt, "must have at least 16 bytes in the chunk `fmt `. Got " +
                                          std::to_string(chunk.size()));
  uint32_t tag = little_endian<uint16_t>(chunk, 0);
  const uint32_t channels = little_endian<uint16_t>(chunk, 2),
                 rate = little_endian<uint32_t>(chunk, 4),
                 block = little_endian<uint16_t>(chunk, 12),
                 bits = little_endian<uint16_t>(chunk, 14);
  if (tag == kExtensible) tag = sub_format(chunk);
  const auto type = sample_type(tag, bits);
  if (!type)
    throw WeightsError(Code::Unsupported,
                       kFormats + tag_name(tag) + " of " + std::to_string(bits) + " bits");
  const auto check = [](bool holds, const char* rule, uint32_t got) {
    if (!holds) throw WeightsError(Code::Corrupt, std::string(rule) + std::to_string(got));
  };
  check(channels > 0, "must have at least one channel. Got ", channels);
  check(rate > 0, "must have a rate of at least 1 Hz. Got ", rate);
  check(rate <= kMostRate, "must have a rate of at most 10 MHz. Got ", rate);
  check(block == channels * bytes_of(*type),
        "must have frames of as many bytes as its channels have. Got ", block);
  return {*type, channels, rate};
}

// The samples in the chunk `data` at `begin`, which states its `size`.
StoredSound samples_in(const InputFile& file, const Format& format, uint64_t begin, uint64_t size) {
  const uint64_t left = file.size() - begin,
                 frame = format.channels * static_cast<uint64_t>(bytes_of(format.type));
  const bool ends_with_file = size == 0 || size == 0xFFFFFFFF;
  if (!ends_with_file && size > left && size - left >= frame)
    throw WeightsError(Code::Truncated, "must have the " + std::to_string(size) +
                                            " bytes that its chunk `data` states. Got " +
                                            std::to_string(left));
  return {.type = format.type,
          .channels = format.channels,
          .frames = static_cast<int64_t>((ends_with_file ? left : std::min(size, left)) / frame),
          .rate = format.rate,
          .offset = begin,
          .is_interleaved = true};
}

}  // namespace

StoredSound find_wav(const InputFile& file) {
  constexpr int kMostChunks = 1 << 16;
  constexpr uint64_t kFormatBytes = 40;  // of which more are not read
  check_container(file);
  std::optional<Format> format;
  uint64_t at = 12;
  for (int chunk = 0; at <= file.size() && file.size() - at >= kHead; ++chunk) {
    if (chunk == kMostChunks)
      throw WeightsError(Code::LimitExceeded, "must have at most " + std::to_string(kMostChunks) +
                                                  " chunks before `data`. Got more");
    const std::string head = file.read(at, kHead);
    const std::string_view id = std::string_view(head).substr(0, 4);
    const uint64_t size = little_endian<uint32_t>(head, 4), left = file.size() - at - kHead;
    at += kHead;
    if (id == "data" && format) return samples_in(file, *format, at, size);
    if (id == "data") break;
    if (size > left)
      throw WeightsError(Code::Truncated, "must have the " + std::to_string(size) +
                                              " bytes that its chunk " + io::in_quotes(id) +
                                              " states. Got " + std::to_string(left));
    if (id == "fmt ") format = read_format(file.read(at, std::min(size, kFormatBytes)));
    at += size + size % 2;
  }
  throw WeightsError(Code::Corrupt,
                     format ? "must have a chunk `data`. Got no such chunk"
                            : "must have a chunk `fmt ` before `data`. Got no such chunk");
}

}  // namespace posenc::sound
