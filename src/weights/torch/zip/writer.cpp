#include "weights/torch/zip/writer.h"

#include <zlib.h>

#include <algorithm>

namespace posenc::io {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kLocalHeader = 30;
constexpr uint64_t kMost16 = 0xffff, kMost32 = 0xffffffff;
constexpr uint16_t kVersion = 20, kVersion64 = 45;
constexpr uint16_t kExtra64 = 1, kExtraPadding = 0x4246;  // "FB", as PyTorch pads
constexpr uint16_t kDate = 0x21;                          // 1 January 1980, at midnight

// Consecutive little-endian numbers (APPNOTE.TXT, section 4.3).
class Bytes {
 public:
  Bytes& u16(uint64_t value) { return number(value, 2); }
  Bytes& u32(uint64_t value) { return number(value, 4); }
  Bytes& u64(uint64_t value) { return number(value, 8); }
  Bytes& text(const std::string& text) {
    bytes_ += text;
    return *this;
  }
  const std::string& str() const { return bytes_; }

 private:
  Bytes& number(uint64_t value, unsigned width) {
    for (unsigned i = 0; i < width; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
    return *this;
  }
  std::string bytes_;
};

// A value that is too large for its field is in the zip64 extra field.
uint64_t short32(uint64_t value) { return std::min(value, kMost32); }

// The fields that the local and the central header have in common.
void common_fields(Bytes& header, uint32_t crc, uint64_t size, const std::string& name,
                   const std::string& extra) {
  const uint16_t no_flags = 0, stored = 0, no_time = 0;
  header.u16(no_flags).u16(stored).u16(no_time).u16(kDate).u32(crc);
  header.u32(short32(size)).u32(short32(size)).u16(name.size()).u16(extra.size());
}

}  // namespace

void ZipWriter::add(const std::string& name, const void* data, uint64_t size) {
  Entry entry{root_ + "/" + name, 0, size, file_.written()};
  entry.crc = static_cast<uint32_t>(::crc32_z(0, static_cast<const Bytef*>(data), size));

  Bytes extra;
  if (size >= kMost32) extra.u16(kExtra64).u16(16).u64(size).u64(size);
  const uint64_t before = entry.offset + kLocalHeader + entry.name.size() + extra.str().size() + 4;
  const uint64_t padding = (kAlignment - before % kAlignment) % kAlignment;
  extra.u16(kExtraPadding).u16(padding).text(std::string(padding, 'Z'));

  Bytes header;
  header.text("PK\3\4").u16(size >= kMost32 ? kVersion64 : kVersion);
  common_fields(header, entry.crc, size, entry.name, extra.str());
  write(header.text(entry.name).text(extra.str()).str());
  file_.write(data, size);
  entries_.push_back(std::move(entry));
}

void ZipWriter::finish() {
  const uint64_t begin = file_.written();
  Bytes directory;
  for (const auto& entry : entries_) {
    Bytes large;
    if (entry.size >= kMost32) large.u64(entry.size).u64(entry.size);
    if (entry.offset >= kMost32) large.u64(entry.offset);
    Bytes extra;
    if (!large.str().empty()) extra.u16(kExtra64).u16(large.str().size()).text(large.str());
    const uint16_t version = large.str().empty() ? kVersion : kVersion64;
    directory.text("PK\1\2").u16(version).u16(version);
    common_fields(directory, entry.crc, entry.size, entry.name, extra.str());
    const uint16_t no_comment = 0, disk = 0, internal = 0;
    directory.u16(no_comment).u16(disk).u16(internal).u32(0).u32(short32(entry.offset));
    directory.text(entry.name).text(extra.str());
  }
  const uint64_t size = directory.str().size(), end = begin + size;
  const uint64_t count = entries_.size();
  if (count >= kMost16 || size >= kMost32 || begin >= kMost32) {
    directory.text("PK\6\6").u64(44).u16(kVersion64).u16(kVersion64).u32(0).u32(0);
    directory.u64(count).u64(count).u64(size).u64(begin);
    directory.text("PK\6\7").u32(0).u64(end).u32(1);
  }
  const uint64_t short_count = std::min(count, kMost16);
  directory.text("PK\5\6").u16(0).u16(0).u16(short_count).u16(short_count);
  directory.u32(short32(size)).u32(short32(begin)).u16(0);
  write(directory.str());
}

}  // namespace posenc::io
