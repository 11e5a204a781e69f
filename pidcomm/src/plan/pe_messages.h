// The messages of a call of pidcomm_sendrecv: their checks, and the lines that they move.
//
// The lanes of a line of the destination come from several PEs, so the messages to the PEs of an
// entangled group are cut into targets: runs of lines in which every lane has one message. A line
// of a target is the OR of the lines of 1 to 8 streams, each with its lanes shuffled and the other
// lanes zero, as in the pass `merge`.
//
// A unit is the work of one thread. A thread visits several tracks of a unit side by side, because
// lines of both banks of a pair are adjacent in memory.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/geometry.h"
#include "pidcomm/messages.h"
#include "topology/hypercube.h"

namespace pidcomm {

/// The number of the entangled group of a stream whose lines all hold the word of PIDCOMM_FILL.
inline constexpr uint32_t kFillEg = ~0u;

/// If the targets of an entangled group have more streams than this on average, it has row units,
/// because its targets would load lines repeatedly.
inline constexpr uint32_t kFewSources = 2;

/// Lines that a target loads: those of words word, word + 1, ... of an entangled group. In run i
/// the stream begins i * step_words later. With kFillEg, all lines hold the word `fill`.
struct MessageStream {
  uint32_t eg, word, step_words;
  uint64_t fill;
  uint64_t lane_map;  // see MergeSource
};

/// Lines that a thread stores one after another: `words` words in each of `runs` runs.
struct MessageTarget {
  uint32_t eg, word, step_words, words, runs;
  uint32_t first_stream, stream_count;
  uint32_t keep_lanes;  // lanes that no message writes

  uint64_t lines() const { return uint64_t{words} * runs; }
};

/// Targets that a thread visits one after another.
struct MessageTrack {
  uint32_t first_target, target_count;
};

struct MessageUnit {
  uint32_t first_track, track_count;
  uint64_t even_lines;  // if each track has one target with this number of lines, threads may share
                        // the lines; else 0
};

/// A message to a lane of a row unit, in words of MRAM.
struct RowMessage {
  uint32_t word, words;
  uint32_t from_eg, from_lane, from_word;  // from_eg: may be kFillEg
  uint64_t fill;
};

/// Words [first_word, end_word) of an entangled group whose lanes come from many entangled groups.
/// Targets would load each line up to 8 times. Instead, a thread turns lines into rows, one per PE,
/// copies words between rows, and turns the rows into lines. The messages are in the order of lanes
/// and words; those of lane l are first_message[l] to first_message[l + 1] - 1. A message may begin
/// before the words of the unit, or end after them.
struct RowUnit {
  uint32_t eg, first_word, end_word;
  std::array<uint32_t, kLanes + 1> first_message;
};

/// The sizes of the lines of all targets and row units, in lines. Row units load a line once, if
/// their caches suffice.
struct MessageLines {
  uint64_t loaded = 0, stored = 0, kept = 0, shuffled = 0;
};

/// Words that a row unit turns into rows at a time.
inline constexpr uint32_t kRowPageWords = 64;

class PeMessages {
 public:
  /// request: the request of a call; its host and host_bytes are the messages. heap_base: MRAM byte
  /// address of offset 0 in the request. Errors: those of pidcomm_sendrecv. Throws std::bad_alloc.
  PeMessages(const Hypercube &cube, const pidcomm_request &request, uint64_t heap_base);

  /// The messages of the request. `runs` is at least 1.
  const std::vector<pidcomm_pe_message> &list() const { return list_; }
  /// Whether a request has these messages.
  bool is_of(const pidcomm_request &request) const;

  /// Absolute MRAM bytes of the windows.
  uint64_t src() const { return src_; }
  uint64_t dst() const { return dst_; }
  /// The bytes from the start of a window to the end of the last byte that a message reads
  /// (source) or writes (destination) at any PE.
  uint64_t in_bytes() const { return in_bytes_; }
  uint64_t out_bytes() const { return out_bytes_; }
  /// The bytes of all messages.
  uint64_t bytes() const { return bytes_; }
  /// The bytes of the tables.
  uint64_t table_bytes() const {
    return (given_.size() + list_.size()) * sizeof given_[0] +
           targets_.size() * sizeof targets_[0] + streams_.size() * sizeof streams_[0] +
           row_messages_.size() * sizeof row_messages_[0];
  }
  /// Whether messages write the complete extent of out_bytes at every PE.
  bool fills_output() const { return bytes_ == out_bytes_ * pes_; }
  /// Whether messages read bytes that messages write.
  bool is_in_place() const { return is_in_place_; }

  const std::vector<MessageUnit> &units() const { return units_; }
  const std::vector<MessageTrack> &tracks() const { return tracks_; }
  const std::vector<MessageTarget> &targets() const { return targets_; }
  const std::vector<MessageStream> &streams() const { return streams_; }
  const std::vector<RowUnit> &row_units() const { return row_units_; }
  const std::vector<RowMessage> &row_messages() const { return row_messages_; }
  const MessageLines &lines() const { return lines_; }
  /// The words of the longest message of row units, and the tracks of the largest unit.
  uint32_t longest_row_words() const { return longest_row_words_; }
  uint32_t most_tracks() const { return most_tracks_; }

 private:
  struct Lanes;
  struct Cut;
  bool windows_meet() const { return src_ < dst_ + out_bytes_ && dst_ < src_ + in_bytes_; }
  void measure(const Hypercube &cube);
  void check_overlaps();
  uint32_t unit_ranks() const;
  void make_tables(const Hypercube &cube);
  void cut(uint32_t eg, std::vector<Lanes> &lanes, std::vector<Cut> &cuts);
  void add_units(std::vector<Cut> &cuts);
  void add_target(const Cut &cut);
  void add_row_units(uint32_t eg, const std::vector<Lanes> &lanes);

  const uint32_t pes_;
  std::vector<pidcomm_pe_message> given_;  // as in the request
  std::vector<pidcomm_pe_message> list_;
  uint64_t src_ = 0, dst_ = 0;
  uint64_t in_bytes_ = 0, out_bytes_ = 0, bytes_ = 0;
  bool is_in_place_ = false;

  std::vector<MessageUnit> units_;
  std::vector<MessageTrack> tracks_;
  std::vector<MessageTarget> targets_;
  std::vector<MessageStream> streams_;
  std::vector<RowUnit> row_units_;
  std::vector<RowMessage> row_messages_;
  MessageLines lines_;
  uint32_t longest_row_words_ = 0, most_tracks_ = 0;
};

}  // namespace pidcomm
