#include "weights/torch/zip/index.h"

#include <zlib.h>

#include <algorithm>

#include "base/text.h"
#include "weights/common/file.h"
#include "weights/torch/zip/end.h"

namespace posenc::io {
namespace {

constexpr std::size_t kLocal = 30;
constexpr unsigned kEncrypted = 0x2041;  // plain, strong, masked
constexpr unsigned kDataDescriptor =
    0x8;  // the local header leaves crc and sizes to a later record
constexpr uint16_t kZip64 = 1;
constexpr uint32_t kAllOnes = 0xffffffff;

WeightsError damaged_record(std::string_view name, const std::string& rule) {
  return damaged_zip("record " + in_quotes(name) + " " + rule);
}

// Names are looked up and never used as paths; such a name would attack programs that unpack the
// archive.
bool is_safe_name(std::string_view name) {
  if (name.empty() || name.front() == '/') return false;
  if (name.find('\0') != name.npos || name.find('\\') != name.npos) return false;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('/', at), name.size());
    if (name.substr(at, end - at) == "..") return false;
    at = end + 1;
  }
  return true;
}

// Replaces the fields that are all ones by those of the zip64 extra field, in its fixed order.
void widen(std::string_view extra, std::string_view name, uint64_t& bytes, uint64_t& packed,
           uint64_t& local) {
  if (bytes != kAllOnes && packed != kAllOnes && local != kAllOnes) return;
  while (extra.size() >= 4) {
    const std::size_t size = little_endian<uint16_t>(extra, 2);
    if (size > extra.size() - 4) break;
    if (little_endian<uint16_t>(extra, 0) != kZip64) {
      extra.remove_prefix(4 + size);
      continue;
    }
    std::string_view field = extra.substr(4, size);
    for (uint64_t* value : {&bytes, &packed, &local}) {
      if (*value != kAllOnes) continue;
      if (field.size() < 8) throw damaged_record(name, "has a zip64 field that is too short");
      *value = little_endian<uint64_t>(field, 0);
      field.remove_prefix(8);
    }
    return;
  }
  throw damaged_record(name, "lacks its zip64 field");
}

std::size_t fixed_header(const ZipRecord& record) { return kLocal + record.name.size(); }

// Reads local headers that are close together in one call: a single call for many small records,
// and none of the data of large ones.
class HeaderReader {
 public:
  /// The records in the order of their offsets, all of them before `end`.
  HeaderReader(const InputFile& file, const std::vector<ZipRecord*>& records, uint64_t end)
      : file_(file), records_(records), end_(end) {}

  /// Where the record after record `i` begins.
  uint64_t next(std::size_t i) const {
    return i + 1 < records_.size() ? records_[i + 1]->offset : end_;
  }

  /// The fixed part of record `i`'s header. It has to end before next(i), and that before `end`.
  std::string_view at(std::size_t i) {
    const uint64_t offset = records_[i]->offset;
    const std::size_t count = fixed_header(*records_[i]);
    if (offset < begin_ || offset + count > begin_ + buffer_.size()) {
      buffer_.resize(std::max<uint64_t>(count, end_of_run(i) - offset));
      file_.read(offset, buffer_.data(), buffer_.size());
      begin_ = offset;
    }
    return std::string_view(buffer_).substr(offset - begin_, count);
  }

 private:
  static constexpr uint64_t kClose = 4096;  // copying this much costs as much as a call
  static constexpr uint64_t kChunk = 65536;

  // The end of the last header that is worth reading together with that of `i`.
  uint64_t end_of_run(std::size_t i) const {
    const uint64_t limit = std::min(end_, records_[i]->offset + kChunk);
    uint64_t until = records_[i]->offset;
    for (; i + 1 < records_.size() && next(i) - records_[i]->offset <= kClose; ++i) {
      const uint64_t after = next(i) + fixed_header(*records_[i + 1]);
      if (after > limit) break;
      until = after;
    }
    return until;
  }

  const InputFile& file_;
  const std::vector<ZipRecord*>& records_;
  const uint64_t end_;
  std::string buffer_;
  uint64_t begin_ = 0;
};

}  // namespace

bool looks_like_zip(const InputFile& file) {
  return file.size() >= 4 && file.read(0, 4) == "PK\3\4";
}

ZipIndex::ZipIndex(const InputFile& file) : file_(file) { read_directory(); }

void ZipIndex::read_directory() {
  const ZipDirectory directory = find_zip_directory(file_);
  directory_ = file_.read(directory.offset, directory.bytes);
  const std::string_view bytes = directory_;
  records_.reserve(directory.count);
  std::size_t at = 0;
  for (uint64_t i = 0; i < directory.count; ++i) {
    if (bytes.size() - at < kZipEntry || bytes.substr(at, 4) != "PK\1\2") {
      throw damaged_zip("its directory is cut off");
    }
    const std::size_t name_size = little_endian<uint16_t>(bytes, at + 28);
    const std::size_t extra_size = little_endian<uint16_t>(bytes, at + 30);
    const std::size_t comment_size = little_endian<uint16_t>(bytes, at + 32);
    if (bytes.size() - at - kZipEntry < name_size + extra_size + comment_size) {
      throw damaged_zip("its directory is cut off");
    }
    ZipRecord record;
    record.name = bytes.substr(at + kZipEntry, name_size);
    if (!is_safe_name(record.name)) throw damaged_record(record.name, "has a forbidden name");
    if ((little_endian<uint16_t>(bytes, at + 8) & kEncrypted) != 0) {
      throw WeightsError(WeightsErrorCode::Unsupported,
                         "is an encrypted archive (record " + in_quotes(record.name) + ")",
                         "decrypt it and save it again with PyTorch");
    }
    record.method = little_endian<uint16_t>(bytes, at + 10);
    record.crc = little_endian<uint32_t>(bytes, at + 16);
    record.packed = little_endian<uint32_t>(bytes, at + 20);
    record.bytes = little_endian<uint32_t>(bytes, at + 24);
    record.offset = little_endian<uint32_t>(
        bytes, at + 42);  // of its local header, whose size read_local_headers() adds
    widen(bytes.substr(at + kZipEntry + name_size, extra_size), record.name, record.bytes,
          record.packed, record.offset);
    if (record.stored() && record.packed != record.bytes) {
      throw damaged_record(record.name, "is stored, but has two sizes");
    }
    records_.push_back(record);
    at += kZipEntry + name_size + extra_size + comment_size;
  }
  if (at != bytes.size()) throw damaged_zip("its directory has bytes after its last entry");

  read_local_headers(directory.offset);
  indices_.reserve(records_.size());
  for (std::size_t i = 0; i < records_.size(); ++i) {
    if (!indices_.emplace(records_[i].name, i).second) {
      throw WeightsError(WeightsErrorCode::DuplicateKey,
                         "holds two records of name " + in_quotes(records_[i].name));
    }
  }
}

void ZipIndex::read_local_headers(uint64_t end) {
  std::vector<ZipRecord*> by_offset;
  by_offset.reserve(records_.size());
  for (ZipRecord& record : records_) by_offset.push_back(&record);
  std::sort(by_offset.begin(), by_offset.end(),
            [](const ZipRecord* a, const ZipRecord* b) { return a->offset < b->offset; });
  HeaderReader headers(file_, by_offset, end);
  for (std::size_t i = 0; i < by_offset.size(); ++i) {
    ZipRecord& record = *by_offset[i];
    const uint64_t next = headers.next(i);
    const uint64_t fixed = fixed_header(record);
    if (next > end || record.offset > next || next - record.offset < fixed) {
      throw damaged_record(record.name, "overlaps another or lies outside the file");
    }
    const std::string_view header = headers.at(i);
    const auto flags = little_endian<uint16_t>(header, 6);
    const auto packed = little_endian<uint32_t>(header, 18);
    const auto bytes = little_endian<uint32_t>(header, 22);
    const bool later = (flags & kDataDescriptor) != 0 && packed == 0 && bytes == 0;
    const bool same_sizes = (packed == kAllOnes || packed == record.packed) &&
                            (bytes == kAllOnes || bytes == record.bytes);
    if (header.substr(0, 4) != "PK\3\4" ||
        little_endian<uint16_t>(header, 26) != record.name.size() ||
        header.substr(kLocal) != record.name || (flags & kEncrypted) != 0 ||
        little_endian<uint16_t>(header, 8) != record.method || !(later || same_sizes)) {
      throw damaged_record(record.name, "differs from its entry in the directory");
    }
    const uint64_t data = fixed + little_endian<uint16_t>(header, 28);
    if (data > next - record.offset || record.packed > next - record.offset - data) {
      throw damaged_record(record.name, "overlaps another or lies outside the file");
    }
    record.offset += data;
  }
}

const ZipRecord* ZipIndex::find(std::string_view name) const {
  const auto found = indices_.find(name);
  return found == indices_.end() ? nullptr : &records_[found->second];
}

std::string ZipIndex::read(const ZipRecord& record) const {
  if (!record.stored()) {
    throw WeightsError(WeightsErrorCode::Unsupported,
                       "is a compressed archive (record " + in_quotes(record.name) + ")",
                       "save it again with PyTorch, which stores the records as they are");
  }
  std::string bytes = file_.read(record.offset, record.bytes);
  const auto sum = ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  if (record.crc != 0 && sum != record.crc) {
    throw damaged_record(record.name, "does not have the checksum that it should");
  }
  return bytes;
}

}  // namespace posenc::io
